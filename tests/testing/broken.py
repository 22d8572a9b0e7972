"""Encodings with one planted fault each: what is broken, and the check that must find it.

A row is the class it derives from, what stands instead of its methods, and the arguments that it
is built with (by the class, where none are said).
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from posenc import (
    CABLE,
    AdditiveGRAPE,
    ALiBi,
    CoPE,
    CounterRotary,
    DAPEv2,
    Learned,
    RemappedRotary,
    ReRoPE,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
    Temperature,
    TokenEncoding,
)
from posenc.positions import Coordinates, consecutive
from posenc.testing import Case

USUAL: dict[type, dict[str, Any]] = {
    Sinusoidal: {"dim": 8},
    Learned: {"dim": 8, "max_len": 16},
    Rotary: {"frequencies": 8},
    CounterRotary: {"rotary": Rotary(8)},
    ALiBi: {"heads": 4},
    T5Bias: {"heads": 4},
    Temperature: {"heads": 4, "scale": 2.0},
    Shaw: {"heads": 4, "head_dim": 8, "reach": 2, "values": True},
    RemappedRotary: {"heads": 4, "rotary": Rotary(8), "remapping": ReRoPE(4)},
    AdditiveGRAPE: {"heads": 4, "head_dim": 8, "gates": ("key",), "std": 1.0},
    CoPE: {"heads": 4, "head_dim": 8, "max_positions": 3, "std": 1.0},
    DAPEv2: {"heads": 4, "bias": ALiBi(4)},
    CABLE: {"heads": 4, "dim": 6},
}


@dataclass(frozen=True)
class Broken:
    """A class with a fault, and the checks that find it."""

    kind: type
    checks: tuple[str, ...]
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def case(self) -> Case:
        arguments = next((USUAL[each] for each in self.kind.__mro__ if each in USUAL), {"dim": 8})
        limit = arguments.get("max_len", getattr(self.kind, "most", None))
        return Case(self.kind, arguments, self.changes, limit=limit)


def broken(name: str, base: type, *checks: str, **given: Any) -> Broken:
    """``base`` with other methods and attributes; a method is given that of the base to call."""
    space = {key: _over(base, key, each) if callable(each) else each for key, each in given.items()}
    return Broken(type(name, (base,), space), checks)


def _over(base: type, key: str, method: Any) -> Any:
    def replaced(self: Any, *given: Any, **named: Any) -> Any:
        return method(self, lambda *a, **n: getattr(base, key)(self, *a, **n), *given, **named)

    return replaced


# Faults that take more than a line.


class Tutorial(TokenEncoding):
    """The common module: a float32 buffer of fixed length, sliced to the sequence."""

    batch_first, keeps_norm, keeps_shift, most = True, True, True, 64

    def __init__(self, dim: int, max_len: int = 64):
        super().__init__()
        self.dim = dim
        self.register_buffer("pe", Sinusoidal(dim).table(torch.arange(max_len)))

    def table(self, positions, *, dtype=None):
        return self.pe[positions].to(dtype or torch.float32)

    def encode(self, x, table):
        return x + table


class IgnoresBase(Sinusoidal):
    def __init__(self, dim, base=10_000.0):
        super().__init__(dim)


class RefusesItsBase(Sinusoidal):
    """Takes any base and works with none but the usual."""

    def __init__(self, dim, base=10_000.0):
        super().__init__(dim, base)

    def encode(self, x, table):
        if self.base != 10_000.0:
            raise ValueError("no such base")
        return super().encode(x, table)


class CutsAPart(Learned):
    """One of its two parameters never gets a gradient."""

    def __init__(self, dim, max_len):
        super().__init__(dim, max_len)
        self.shift = torch.nn.Parameter(torch.ones(dim))

    def table(self, positions, *, dtype=None):
        return super().table(positions, dtype=dtype) + self.shift.detach()


class HasNoFactory(TokenEncoding):
    """Learns one number, which has no axis."""

    batch_first, keeps_norm, keeps_shift = True, True, True

    def __init__(self, dim):
        super().__init__()
        self.dim, self.height = dim, torch.nn.Parameter(torch.tensor(1.0))

    def table(self, positions, *, dtype=None):
        return self.height * positions.unsqueeze(-1).expand(*positions.shape, self.dim)

    def encode(self, x, table):
        return x + table


class DividesByItsRow(Temperature):
    """Divides scores by their root mean square over all keys, those after the query too."""

    is_relative, is_pairwise = True, False

    def __init__(self, heads, scale=1.0, reads_later=False):
        super().__init__(heads)
        self.reads_later = reads_later

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        size = (scores.double().square().mean(-1, keepdim=True) + 1).sqrt()
        return super().encode((scores / size).to(scores.dtype), table)


class Hides(Sinusoidal):
    """Keeps a tensor where a cast does not find it."""

    def __init__(self, dim):
        super().__init__(dim)
        self.kept = {"rows": (torch.zeros(3),)}


def rounds_inside(s, of, positions, **given):
    """Computes in 8 bits where its parameters have 16."""
    rows = of(positions, **given)
    narrow = s.weight.dtype in (torch.bfloat16, torch.float16)
    return rows.to(torch.float8_e4m3fn).to(rows.dtype) if narrow else rows


def cut_keys(s, of, scores, table, *, q=None, k=None, scale=None):
    seen = of(scores, table, q=q, k=k, scale=scale)
    return seen + k.detach().sum(-1).mean(-2, keepdim=True).unsqueeze(-2)


def looks(s, of, x, table):
    """A value, which a graph cannot look at."""
    return of(x, table) if x.abs().max().item() >= 0 else x


BASE = {"base": 100.0}
COARSE = [
    Broken(Tutorial, ("owns_parameters_only", "casts", "arguments_matter")),
    Broken(Hides, ("owns_parameters_only",)),
    Broken(IgnoresBase, ("arguments_matter",), BASE),
    Broken(RefusesItsBase, ("arguments_matter",), BASE),
    Broken(HasNoFactory, ("parameters_are_made_as_asked",)),
    Broken(CutsAPart, ("gradients_stay_finite",)),
    Broken(DividesByItsRow, ("prefill_equals_decoding", "claims")),
    broken("RemembersLength", Sinusoidal, "purity", "prefill_equals_decoding",
           table=lambda s, of, p, **n: vars(s).setdefault("kept", of(p, **n))[: p.shape[-1]]),
    broken("RoundsInside", Learned, "casts", table=rounds_inside),
    broken("BatchAxis", Sinusoidal, "encodes_the_sequence",
           encode=lambda s, of, x, t: x + s.table(consecutive(len(x))).unsqueeze(1)),
    broken("FloatPositions", Sinusoidal, "neighbors_stay_distinct",
           table=lambda s, of, p, **n: of(p.to(torch.bfloat16).long(), **n)),
    broken("ForgetsRows", Rotary, "kept_rows_serve",
           encode_both=lambda s, of, q, k, t, at=None, **n: of(q, k, t[: q.shape[-2]], **n)),
    broken("DividedByLength", Sinusoidal, "left_padded", "packed", "sharded",
           table=lambda s, of, p, **n: of(p * 1000 // max(1, p.shape[-1]), **n)),
    broken("LearnsInAutocast", Learned, "autocast",
           table=lambda s, of, p, **n: torch.nn.functional.linear(of(p, **n), torch.eye(s.dim))),
    broken("TakesTheDefault", Sinusoidal, "default_dtype",
           table=lambda s, of, p, **n: of(p, **n) + (p > 2).unsqueeze(-1) * 0.3),
    broken("CastWithItsModule", Learned, "casts", table=lambda s, of, p, **n: of(p)),
    broken("AddsFarFromZero", Learned, "narrow_encodings",
           encode=lambda s, of, x, t: (x + 100) + (t.to(x.dtype) - 100)),
    broken("CutsTheContent", Temperature, "gradients_stay_finite",
           encode=lambda s, of, x, t, q=None, **n: of(x.detach(), t) + 0 * q.sum()),
    broken("CutsKeys", Shaw, "gradients_stay_finite", encode=cut_keys),
    broken("ReadsNeighborsInSilence", DAPEv2, "claims", reads_neighbors=False),
    broken("ClaimsLaterKeys", ALiBi, "claims", reads_later=True),
    broken("ReadsTheTokenBefore", CABLE, "prefill_equals_decoding", "sharded",
           key_features=lambda s, of, hidden: of(hidden + hidden.roll(1, -2))),
    broken("WritesInPlace", Sinusoidal, "content_is_left_alone",
           encode=lambda s, of, x, t: x.add_(t.to(x.dtype))),
    broken("GivesItsTable", Sinusoidal, "content_is_left_alone",
           encode=lambda s, of, x, t: t.to(x.dtype).expand_as(x)),
    broken("ClaimsTooMuch", Learned, "claims", keeps_shift=True),
    broken("Detached", Learned, "gradients", table=lambda s, of, p, **n: of(p, **n).detach()),
    broken("BreaksTheGraph", Sinusoidal, "growing_lengths_do_not_recompile", "exports",
           encode=looks),
]  # fmt: skip


# Faults of one dtype, one row, one mode or one side.


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
