"""Encodings with one planted fault each: what is broken, and the check that must find it.

A row is the class it derives from, what stands instead of its methods, and the arguments that it
is built with (by the class, where none are said).
"""

import math
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
from posenc.positions import consecutive
from posenc.testing import Case

NARROW = (torch.bfloat16, torch.float16)
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
        steps = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
        table = torch.stack([torch.sin(steps * div), torch.cos(steps * div)], -1).flatten(-2)
        self.register_buffer("pe", table)

    def table(self, positions, *, dtype=None):
        return self.pe[positions].to(dtype or torch.float32)

    def encode(self, x, table):
        return x + table


class RemembersLength(Sinusoidal):
    """Keeps the first table it made, whatever is asked for later."""

    def table(self, positions, *, dtype=None):
        if not hasattr(self, "kept"):
            self.kept = super().table(positions, dtype=dtype)
        return self.kept[: positions.shape[-1]]


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


class RoundsInside(Learned):
    """Computes in 8 bits where its parameters have 16."""

    def table(self, positions, *, dtype=None):
        rows = super().table(positions, dtype=dtype)
        narrow = self.weight.dtype in NARROW
        return rows.to(torch.float8_e4m3fn).to(rows.dtype) if narrow else rows


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
    Broken(RemembersLength, ("purity", "prefill_equals_decoding")),
    Broken(IgnoresBase, ("arguments_matter",), BASE),
    Broken(RefusesItsBase, ("arguments_matter",), BASE),
    Broken(HasNoFactory, ("parameters_are_made_as_asked",)),
    Broken(RoundsInside, ("casts",)),
    Broken(CutsAPart, ("gradients_stay_finite",)),
    Broken(DividesByItsRow, ("prefill_equals_decoding", "claims")),
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
