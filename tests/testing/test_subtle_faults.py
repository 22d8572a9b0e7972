"""Faults of one dtype, one row, one mode or one side: the battery must find each by itself."""

import pytest
import torch

from posenc import (
    KERPLE,
    AdditiveGRAPE,
    ALiBi,
    CounterRotary,
    Cyclic,
    Learned,
    RemappedRotary,
    ReRoPE,
    Rotary,
    ScoreEncoding,
    Shaw,
    Sinusoidal,
    T5Bias,
    Temperature,
)
from posenc.audit import check as check_encoding
from posenc.positions import Coordinates
from posenc.testing import Case, battery


class Backward(torch.autograd.Function):
    """Changes the gradient alone."""

    @staticmethod
    def forward(ctx, x, change):
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.change(gradient), None


class WrongGradientOfBatches(Sinusoidal):
    def encode(self, x, table):
        def change(g):
            return g * 1.1 if g.ndim > 2 and len(g) > 1 else g

        return super().encode(Backward.apply(x, change), table)


class WrongGradientOfLaterTokens(Temperature):
    def encode(self, scores, table, **given):
        def change(g):
            return g * 1.1 if g.shape[-1] > 3 else g

        return super().encode(Backward.apply(scores, change), table, **given)


class WrongGradientInFloat32(Sinusoidal):
    def encode(self, x, table):
        def change(g):
            return g * 1.1 if g.dtype == torch.float32 else g

        return super().encode(Backward.apply(x, change), table)


class WrongGradientInBfloat16(Sinusoidal):
    def encode(self, x, table):
        def change(g):
            return g * 1.1 if g.dtype == torch.bfloat16 else g

        return super().encode(Backward.apply(x, change), table)


class DoublesBfloat16(Sinusoidal):
    def encode(self, x, table):
        made = super().encode(x, table)
        return made * 2 if x.dtype == torch.bfloat16 else made


class LeavesHalvesAlone(Temperature):
    def __init__(self, heads):
        super().__init__(heads, scale=2.0)

    def encode(self, scores, table, **given):
        half = scores.dtype == torch.float16
        return scores + 0 if half else super().encode(scores, table, **given)


class WrongInLateRows(Sinusoidal):
    def encode(self, x, table):
        made = super().encode(x, table)
        if made.ndim > 2:
            made[4:] += 1
        return made


class KeysAtPlacesOfTheFirstRow(Rotary):
    encode_queries, encode_both = Rotary.encode_queries, Rotary.encode_both

    def encode_keys(self, k, table):
        return super().encode_keys(k, table[:1].expand_as(table) if table.ndim > 3 else table)


class LeavesNarrowKeysAlone(Rotary):
    encode_queries, encode_both = Rotary.encode_queries, Rotary.encode_both

    def encode_keys(self, k, table):
        return k.clone() if k.dtype == torch.bfloat16 else super().encode_keys(k, table)


class TurnsKeysTheOtherWay(Rotary):
    encode_queries, encode_both = Rotary.encode_queries, Rotary.encode_both

    def encode_keys(self, k, table):
        return super().encode_keys(k.flip(-1), table).flip(-1)


class ScalesInTraining(Rotary):
    def encode_queries(self, q, table, **out):
        return super().encode_queries(q, table) * (1.1 if self.training else 1.0)


class FoldsFarPlaces(Rotary):
    def table(self, positions, **given):
        return super().table(torch.where(positions > 2**30, positions // 2 * 2, positions), **given)


class LosesFarDistances(T5Bias):
    def profile(self, distance, **given):
        return super().profile(distance, **given).masked_fill(distance.abs() > 4000, torch.nan)


class DetachesKeysApart(Rotary):
    encode_queries, encode_both = Rotary.encode_queries, Rotary.encode_both

    def encode_keys(self, k, table):
        return super().encode_keys(k.detach(), table)


class LeavesOneQueryAlone(Rotary):
    encode_keys, encode_both = Rotary.encode_keys, Rotary.encode_both

    def encode_queries(self, q, table, **out):
        return q.clone() if q.shape[-2] == 1 else super().encode_queries(q, table)


class CompilesToOtherKeys(Rotary):
    encode_queries, encode_both = Rotary.encode_queries, Rotary.encode_both

    def encode_keys(self, k, table):
        return super().encode_keys(2 * k if torch.compiler.is_compiling() else k, table)


class ValuesByLength(CounterRotary):
    def __init__(self, width):
        super().__init__(Rotary(width))

    def encode_values(self, v, table):
        return super().encode_values(v, table) / v.shape[-2]


class ValuesInFloat32(ValuesByLength):
    def encode_values(self, v, table):
        return super().encode_values(v, table).float()


class LeavesHalvesOfTheOutput(ValuesByLength):
    def encode_output(self, out, table):
        return out.clone() if out.dtype == torch.float16 else super().encode_output(out, table)


class AddsToValuesOfOneQuery(Shaw):
    def __init__(self, heads):
        super().__init__(heads, head_dim=8, reach=2, values=True)

    def encode_output(self, out, weights, table):
        return super().encode_output(out, weights, table) + (out.shape[-2] == 1)


class WritesToItsTable(Sinusoidal):
    def encode(self, x, table):
        return super().encode(x, table.mul_(2))


class DoublesWithGradients(Sinusoidal):
    def encode(self, x, table):
        return super().encode(x, table) * (2 if x.requires_grad else 1)


class DoublesInInference(Sinusoidal):
    def encode(self, x, table):
        return super().encode(x, table) * (2 if torch.is_inference_mode_enabled() else 1)


class CountsInTraining(Sinusoidal):
    calls = 0

    def encode(self, x, table):
        self.calls += self.training
        return super().encode(x, table) * (1 + self.calls)


class HasNoFirstRow(Sinusoidal):
    takes_reals = False

    def table(self, positions, **given):
        return super().table(positions, **given) * (positions > 0).unsqueeze(-1)


class RoundsCoordinates(Sinusoidal):
    def table(self, positions, **given):
        if isinstance(positions, Coordinates):
            positions = Coordinates(positions.floats(torch.float32).double())
        return super().table(positions, **given)


class MixesTwoBatchAxes(Sinusoidal):
    def encode(self, x, table):
        made = super().encode(x, table)
        return made.flip(0) if made.ndim > 3 else made


class DoublesNarrowTables(Sinusoidal):
    def table(self, positions, *, dtype=None):
        return super().table(positions, dtype=dtype) * (2 if dtype == torch.bfloat16 else 1)


class CountsInNarrowNumbers(Sinusoidal):
    def table(self, positions, *, dtype=None):
        if dtype in (torch.bfloat16, torch.float16) and isinstance(positions, torch.Tensor):
            positions = positions.to(dtype).long()
        return super().table(positions, dtype=dtype)


class TakesOneForTheUsualScale(Shaw):
    def __init__(self, heads):
        super().__init__(heads, head_dim=8, reach=2)

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        return super().encode(scores, table, q=q, k=k, scale=scale or 1.0)


class MakesProductsOfTheUsualScale(RemappedRotary):
    def __init__(self, heads):
        super().__init__(heads, Rotary(8), ReRoPE(4))

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        return super().encode(scores, table, q=q, k=k)


class HasAnotherProfile(ALiBi):
    def profile(self, distance, **given):
        return 2 * super().profile(distance, **given)

    def table(self, q_positions, k_positions, **given):
        return super().table(q_positions, k_positions, **given)


class RepeatsKeyHeads(AdditiveGRAPE):
    def __init__(self, heads):
        super().__init__(heads, head_dim=8, gates=("key",), std=1.0)

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        k = k.repeat(*[1] * (k.ndim - 3), self.heads // k.shape[-3], 1, 1)
        return super().encode(scores, table, q=q, k=k, scale=scale)


class AbsoluteWhereFarApart(ALiBi):
    def profile(self, distance, **given):
        return super().profile(distance, **given)

    def table(self, q_positions, k_positions, **given):
        made = super().table(q_positions, k_positions, **given)
        return made.where(made > -50, (q_positions % 7).unsqueeze(-1).to(made.dtype))


class CopiesWithoutItsGain(Learned):
    def __init__(self, dim):
        super().__init__(dim, max_len=16)
        self.gain = torch.nn.Parameter(torch.ones(dim))

    def encode(self, x, table):
        return super().encode(x * self.gain.to(x.dtype), table)

    def __deepcopy__(self, memo):
        made = type(self)(self.dim)
        made.weight.data.copy_(self.weight.data)
        return made


class DividesByTheNorm(Sinusoidal):
    def encode(self, x, table):
        return super().encode(x / x.norm(dim=-1, keepdim=True), table)


SUBTLE = [
    (DetachesKeysApart, "gradients"),
    (LeavesOneQueryAlone, "prefill_equals_decoding"),
    (CompilesToOtherKeys, "compiled_equals_eager"),
    (ValuesByLength, "prefill_equals_decoding"),
    (ValuesInFloat32, "shape_and_dtype"),
    (LeavesHalvesOfTheOutput, "dtypes_agree"),
    (AddsToValuesOfOneQuery, "prefill_equals_decoding"),
    (WritesToItsTable, "content_is_left_alone"),
    (DoublesWithGradients, "gradients_change_nothing"),
    (DoublesInInference, "gradients_change_nothing"),
    (CountsInTraining, "training_changes_nothing_but_by_chance"),
    (HasNoFirstRow, "claims"),
    (RoundsCoordinates, "reals"),
    (MixesTwoBatchAxes, "rows_stand_alone"),
    (DoublesNarrowTables, "dtypes_agree"),
    (CountsInNarrowNumbers, "dtypes_agree"),
    (TakesOneForTheUsualScale, "scale_and_key_heads"),
    (RepeatsKeyHeads, "scale_and_key_heads"),
    (MakesProductsOfTheUsualScale, "attention_at_another_scale"),
    (HasAnotherProfile, "attention_at_another_scale"),
    (AbsoluteWhereFarApart, "claims"),
    (CopiesWithoutItsGain, "copies"),
    (DividesByTheNorm, "stays_finite"),
    (LosesFarDistances, "stays_finite"),
    (WrongGradientOfBatches, "gradients"),
    (WrongGradientOfLaterTokens, "gradients"),
    (WrongGradientInFloat32, "gradients_of_narrow_content"),
    (WrongGradientInBfloat16, "gradients_of_narrow_content"),
    (DoublesBfloat16, "dtypes_agree"),
    (LeavesHalvesAlone, "dtypes_agree"),
    (WrongInLateRows, "rows_stand_alone"),
    (KeysAtPlacesOfTheFirstRow, "kept_rows_serve"),
    (LeavesNarrowKeysAlone, "kept_rows_serve"),
    (TurnsKeysTheOtherWay, "kept_rows_serve"),
    (ScalesInTraining, "training_changes_nothing_but_by_chance"),
    (FoldsFarPlaces, "neighbors_stay_distinct"),
]


@pytest.mark.slow("a battery for each fault", spares=3)
@pytest.mark.parametrize(("broken", "name"), SUBTLE, ids=[row[0].__name__ for row in SUBTLE])
def test_a_subtle_fault_is_caught_by_the_check_that_is_for_it(broken, name):
    size = 4 if issubclass(broken, ScoreEncoding) else 8
    case = Case(lambda: broken(size), limit=16 if issubclass(broken, Learned) else None)
    (check,) = [check for check in battery(case) if check.name == name]
    with pytest.raises(AssertionError):
        check()


SOUND = {
    "Sinusoidal": lambda: Sinusoidal(8),
    "Learned": lambda: Learned(8, max_len=16),
    "Rotary": lambda: Rotary(8),
    "CounterRotary": lambda: CounterRotary(Rotary(8)),
    "ALiBi": lambda: ALiBi(4),
    "T5Bias": lambda: T5Bias(4),
    "Temperature": lambda: Temperature(4),
    "Shaw": lambda: Shaw(4, head_dim=8, reach=2, values=True),
    "RemappedRotary": lambda: RemappedRotary(4, Rotary(8), ReRoPE(4)),
    "AdditiveGRAPE": lambda: AdditiveGRAPE(4, head_dim=8, gates=("key",), std=1.0),
}


@pytest.mark.parametrize("sound", list(SOUND))
def test_what_they_derive_from_passes(sound):
    case = Case(SOUND[sound], limit=16 if sound == "Learned" else None, bitwise=False)
    names = {name for _, name in SUBTLE}
    for check in battery(case, compiling=False):
        if check.name in names:
            check()


def test_a_wrong_gradient_is_a_fault_to_whoever_checks():
    """It is no question that could not be asked."""
    report = check_encoding(WrongGradientOfLaterTokens(4))
    assert "gradients" in {fault.name for fault in report.faults}


def test_a_module_among_the_arguments_is_each_time_the_given_one():
    """A check that casts it, or writes to it, changes nothing for the next."""
    given = KERPLE(4)
    case = Case(Cyclic, {"heads": 4, "bias": given, "period": 7})
    case.module().double()
    assert case.module().bias.p.dtype == given.p.dtype == torch.float32
