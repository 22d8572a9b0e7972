"""Faults of one dtype, one row, one mode or one side: the battery must find each by itself."""

import pytest
import torch

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.audit import check as check_encoding
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


class WrongGradientOfLaterTokens(ALiBi):
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


class LeavesHalvesAlone(ALiBi):
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
    def encode_keys(self, k, table):
        return super().encode_keys(k, table[:1].expand_as(table) if table.ndim > 3 else table)


class LeavesNarrowKeysAlone(Rotary):
    def encode_keys(self, k, table):
        return k.clone() if k.dtype == torch.bfloat16 else super().encode_keys(k, table)


class TurnsKeysTheOtherWay(Rotary):
    def encode_keys(self, k, table):
        return super().encode_keys(k.flip(-1), table).flip(-1)


class ScalesInTraining(Rotary):
    def encode_queries(self, q, table):
        return super().encode_queries(q, table) * (1.1 if self.training else 1.0)


class FoldsFarPlaces(Rotary):
    def table(self, positions, **given):
        return super().table(torch.where(positions > 2**30, positions // 2 * 2, positions), **given)


SUBTLE = [
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


@pytest.mark.parametrize(("broken", "name"), SUBTLE, ids=[row[0].__name__ for row in SUBTLE])
def test_a_subtle_fault_is_caught_by_the_check_that_is_for_it(broken, name):
    size = 4 if issubclass(broken, ALiBi) else 8
    case = Case(lambda: broken(size))
    (check,) = [check for check in battery(case, compiling=False) if check.name == name]
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize("sound", [Sinusoidal, Rotary, ALiBi])
def test_what_they_derive_from_passes(sound):
    case = Case(lambda: sound(4 if sound is ALiBi else 8))
    names = {name for _, name in SUBTLE}
    for check in battery(case, compiling=False):
        if check.name in names:
            check()


def test_a_wrong_gradient_is_a_fault_to_whoever_checks():
    """It is no question that could not be asked."""
    report = check_encoding(WrongGradientOfLaterTokens(4))
    assert "gradients" in {fault.name for fault in report.faults}
