"""Faults of one dtype, one row, one mode or one side: each must be found by itself."""

from typing import Any

import torch
from tests.testing.broken import Broken, broken

from posenc import (
    AdditiveGRAPE,
    ALiBi,
    CounterRotary,
    Learned,
    RemappedRotary,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
    Temperature,
)
from posenc.positions import Coordinates


class Backward(torch.autograd.Function):
    """Changes the gradient alone, by a tenth, where it is of some form."""

    @staticmethod
    def forward(ctx, x, where):
        ctx.where = where
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1.1 if ctx.where(gradient) else 1.0), None


def backward(where) -> Any:
    return lambda s, of, x, table, **given: of(Backward.apply(x, where), table, **given)


def scaled(by) -> Any:
    """What is encoded, times a number that depends on content."""
    return lambda s, of, x, *table, **given: of(x, *table, **given) * by(s, x)


class CountsInTraining(Sinusoidal):
    calls = 0

    def encode(self, x, table):
        self.calls += self.training
        return super().encode(x, table) * (1 + self.calls)


class CopiesWithoutItsGain(Learned):
    def __init__(self, dim, max_len):
        super().__init__(dim, max_len)
        self.gain = torch.nn.Parameter(torch.ones(dim))

    def encode(self, x, table):
        return super().encode(x * self.gain.to(x.dtype), table)

    def __deepcopy__(self, memo):
        made = type(self)(self.dim, 16)
        made.weight.data.copy_(self.weight.data)
        return made


def one_row(s, of, x, table):
    made = of(x, table)
    if made.ndim > 2:
        made[4:] += 1
    return made


def rounded(s, of, positions, **given):
    if isinstance(positions, Coordinates):
        positions = Coordinates(positions.floats(torch.float32).double())
    return of(positions, **given)


def by_place(s, of, q_positions, k_positions, **given):
    made = of(q_positions, k_positions, **given)
    return made.where(made > -50, (q_positions % 7).unsqueeze(-1).to(made.dtype))


SUBTLE = [
    Broken(CountsInTraining, ("training_changes_nothing_but_by_chance",)),
    Broken(CopiesWithoutItsGain, ("copies",)),
    broken("LeavesOneQueryAlone", Rotary, "prefill_equals_decoding",
           encode_queries=lambda s, of, q, t, **n: q.clone() if q.shape[-2] == 1 else of(q, t)),
    broken("CompilesToOtherKeys", Rotary, "compiled_equals_eager",
           encode_keys=scaled(lambda s, k: 2 if torch.compiler.is_compiling() else 1)),
    broken("ValuesByLength", CounterRotary, "prefill_equals_decoding",
           encode_values=scaled(lambda s, v: 1 / v.shape[-2])),
    broken("LeavesHalvesOfTheOutput", CounterRotary, "dtypes_agree",
           encode_output=lambda s, of, out, t: out.clone() if out.dtype == torch.float16
           else of(out, t)),
    broken("WritesToItsTable", Sinusoidal, "content_is_left_alone",
           encode=lambda s, of, x, t: of(x, t.mul_(2))),
    broken("DoublesWithGradients", Sinusoidal, "gradients_change_nothing",
           encode=scaled(lambda s, x: 2 if x.requires_grad else 1)),
    broken("HasNoFirstRow", Sinusoidal, "claims", takes_reals=False,
           table=lambda s, of, p, **n: of(p, **n) * (p > 0).unsqueeze(-1)),
    broken("RoundsCoordinates", Sinusoidal, "reals", table=rounded),
    broken("TakesOneForTheUsualScale", Shaw, "scale_and_key_heads",
           encode=lambda s, of, *x, scale=None, **n: of(*x, scale=scale or 1.0, **n)),
    broken("RepeatsKeyHeads", AdditiveGRAPE, "scale_and_key_heads",
           encode=lambda s, of, *x, k=None, **n: of(
               *x, k=k.repeat(*[1] * (k.ndim - 3), s.heads // k.shape[-3], 1, 1), **n)),
    broken("MakesProductsOfTheUsualScale", RemappedRotary, "attention_at_another_scale",
           encode=lambda s, of, *x, scale=None, **n: of(*x, **n)),
    broken("HasAnotherProfile", ALiBi, "attention_at_another_scale",
           table=lambda s, of, *p, **n: of(*p, **n) / 2),
    broken("AbsoluteWhereFarApart", ALiBi, "claims", table=by_place),
    broken("DividesByTheNorm", Sinusoidal, "stays_finite",
           encode=lambda s, of, x, t: of(x / x.norm(dim=-1, keepdim=True), t)),
    broken("LosesFarDistances", T5Bias, "stays_finite",
           profile=lambda s, of, d, **n: of(d, **n).masked_fill(d.abs() > 4000, torch.nan)),
    broken("WrongGradientOfLaterTokens", Temperature, "gradients",
           encode=backward(lambda g: g.shape[-1] > 3)),
    broken("WrongGradientInFloat32", Sinusoidal, "gradients_of_narrow_content",
           encode=backward(lambda g: g.dtype == torch.float32)),
    broken("WrongInLateRows", Sinusoidal, "rows_stand_alone", encode=one_row),
    broken("KeysAtPlacesOfTheFirstRow", Rotary, "kept_rows_serve",
           encode_keys=lambda s, of, k, t: of(k, t[:1].expand_as(t) if t.ndim > 3 else t)),
    broken("FoldsFarPlaces", Rotary, "neighbors_stay_distinct",
           table=lambda s, of, p, **n: of(torch.where(p > 2**30, p // 2 * 2, p), **n)),
]  # fmt: skip
