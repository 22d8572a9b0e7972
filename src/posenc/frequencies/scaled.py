"""Schedules that change others pair by pair: slower, rounded, faded, or still in part."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import pi
from typing import Any

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_flag, check_positive_number, check_probability, check_whole
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.powers import Geometric, Powers, geometric_of, writer
from posenc.frequencies.schedule import TWO_PI, Number, Rescaled, Schedule, exact


@dataclass(frozen=True)
class Linear(Rescaled):
    """ω_i / s: positions are squeezed by the factor s, and every wavelength grows by it.

    A factor below 1 spreads positions out, as for tokens that stand at fractions of one.

    Args:
        of: The schedule to rescale; its attention factor is kept.
        factor: s; 1 changes nothing, bit for bit.

    Reference:
        Chen et al. 2023, "Extending Context Window of Large Language Models via Positional
        Interpolation", equation 4 (arXiv:2306.15595).

    Example:
        >>> Linear(Geometric(4, base=100.0), factor=2.0).wavelengths()
        (12.566370614359172, 125.66370614359172)
    """

    factor: Number

    def __post_init__(self):
        super().__post_init__()
        check_positive_number(factor=self.factor)

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w / exact(self.factor) for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.of.float32(form) / float(self.factor)


@dataclass(frozen=True)
class Resonance(Rescaled):
    """ω_i → 2π / λ_i with λ_i = round(2π / ω_i), so that a pair repeats after λ_i positions.

    Each pair whose wavelength fits the trained length then meets no value at test time that it has
    not met in training. It comes last, after YaRN for one. A frequency of 0 stays 0.

    Args:
        of: The schedule to round, of wavelengths from 1.5 on; its attention factor is kept.

    Reference:
        Wang et al. 2024, "Resonance RoPE: Improving Context Length Generalization of Large Language
        Models" (arXiv:2403.00071); ``ResonanceRotaryEmbedding`` in sheryc/resonance_rope.

    Example:
        >>> Resonance(Geometric(6, base=1000.0)).wavelengths()
        (6.0, 63.0, 628.0)
    """

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w and TWO_PI / (TWO_PI / w).to_integral_value() for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them; those of 0 stay 0."""
        every = self.of.float32(form)
        return torch.where(every == 0, every, 2 * pi / (2 * pi / every).round())


@dataclass(frozen=True)
class Clipped(Rescaled):
    """ω_i · (1 + cos(π j / (n − 1))) / 2 for the n slowest frequencies, j = 0 … n − 1 among them.

    The first of these keeps its value and the last is 0: low frequencies fade without an edge in
    the spectrum. The last of a schedule are taken for its slowest. One frequency alone keeps its
    value, as in the authors' code. The paper calls the method CoPE; ``posenc.CoPE`` is another.

    Args:
        of: The schedule to clip; its attention factor is kept.
        count: n; 20 in the authors' code for heads of 128 channels.
        soft: Whether they fade. Otherwise all n are 0, the hard clipping that the paper compares
            with.

    Reference:
        Li et al. 2026, "CoPE: Clipped RoPE as A Scalable Free Lunch for Long Context LLMs"
        (arXiv:2602.05258); ``LlamaRotaryEmbedding`` in ``modeling_cope.py`` of hrlics/CoPE.

    Example:
        >>> plain = Geometric(8, base=1e4)
        >>> [round(before / after, 3) if after else 0 for before, after in
        ...  zip(plain.wavelengths(), Clipped(plain, count=3).wavelengths(), strict=True)]
        [1.0, 1.0, 0.5, 0.0]
    """

    count: int = 20
    soft: bool = True

    def __post_init__(self):
        super().__post_init__()
        check_whole(0, count=self.count)
        check_flag(soft=self.soft)

    @property
    def clipped(self) -> int:
        """How many frequencies it changes."""
        return min(self.count, len(self.of))

    def radians(self) -> tuple[Decimal, ...]:
        every = self.of.radians()
        kept, last = len(every) - self.clipped, max(self.clipped - 1, 1)
        shares = (Fraction(j, last) if self.soft else Fraction(1) for j in range(self.clipped))
        gains = ((1 + cos_half_turns(share)) / 2 for share in shares)
        return every[:kept] + tuple(w * g for w, g in zip(every[kept:], gains, strict=True))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them."""
        every, count = self.of.float32(form).clone(), self.clipped
        theta = torch.linspace(0.0, pi, count, dtype=torch.float32, device="cpu")
        every[len(every) - count :] *= 0.5 * (1.0 + theta.cos()) if self.soft else 0.0
        return every


def cos_half_turns(share: Fraction) -> Decimal:
    """cos(π · share) for a share from 0 to 1, to the digits of the context."""
    if share > Fraction(1, 2):
        return -cos_half_turns(1 - share)
    squared = (TWO_PI / 2 * share.numerator / share.denominator) ** 2
    term = total = Decimal(1)
    order = 0
    while total + term != total or not order:
        order += 2
        term = -term * squared / (order * (order - 1))
        total += term
    return total


@dataclass(frozen=True)
class Proportional(Schedule):
    """p-RoPE: ω_i = base^(−2i/dim) for the first ⌊fraction · dim / 2⌋ pairs, 0 for the others.

    The exponent divides by the full width, unlike partial rotation, where it divides by the rotated
    width; the pairs that do not turn are spread with the others over the whole head.

    Args:
        dim: Width of a head.
        fraction: Share of the pairs that turn.
        base: Base of the powers.

    Reference:
        Barbero et al. 2024, "Round and Round We Go!", section 6 (arXiv:2410.06205).

    Example:
        >>> Proportional(8, fraction=0.5, base=100.0).wavelengths()
        (6.283185307179586, 19.869176531592203, inf, inf)
    """

    dim: int
    fraction: float = 1.0
    base: Number = 10_000.0

    def __post_init__(self):
        Geometric(self.dim, self.base)  # checks both
        check_probability(fraction=self.fraction)

    @property
    def rotating(self) -> int:
        """Number of pairs that turn."""
        return int(self.fraction * self.dim // 2)

    def radians(self) -> tuple[Decimal, ...]:
        every = Geometric(self.dim, self.base).radians()
        return every[: self.rotating] + (Decimal(0),) * (len(every) - self.rotating)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        rotating = Powers(self.base, tuple(range(0, 2 * self.rotating, 2)), self.dim).float32(form)
        return torch.cat((rotating, rotating.new_zeros((self.dim + 1) // 2 - self.rotating)))


def _read_linear(rope: Rope, _length: int | None) -> Schedule:
    return Linear(geometric_of(rope), rope.needed("factor"))


LINEAR_ROPE_TYPE = RopeType(
    "linear", _read_linear, writer(Linear, {"factor": "factor"}), keys=("factor",)
)


def _read_proportional(rope: Rope, _length: int | None) -> Schedule:
    fraction = rope.values.get("partial_rotary_factor", 1.0)
    plain = Proportional(rope.head_dim, fraction, rope.base)
    factor = rope.values.get("factor", 1.0)
    return plain if factor == 1 else Linear(plain, factor)


def _write_proportional(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    scaled = isinstance(schedule, Linear)
    plain = schedule.of if scaled else schedule
    if not isinstance(plain, Proportional) or plain.dim != head_dim:  # the share is of the head
        return None
    said = {"rope_theta": float(plain.base), "partial_rotary_factor": plain.fraction}
    return said | {"factor": float(schedule.factor)} if scaled else said


PROPORTIONAL_ROPE_TYPE = RopeType(
    "proportional", _read_proportional, _write_proportional, keys=("factor",)
)
