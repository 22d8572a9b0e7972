"""Clipped RoPE: the slowest frequencies fade to 0 along a cosine."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import pi
from numbers import Integral

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import TWO_PI, Schedule, check_schedule


@dataclass(frozen=True)
class Clipped(Schedule):
    """ω_i · (1 + cos(π j / (n − 1))) / 2 for the n slowest frequencies, j = 0 … n − 1 among them.

    The first of these keeps its value and the last is 0, so low frequencies lose their turn without
    an edge in the spectrum. Which are slowest is read from their order: a schedule runs from fast
    to slow. A clip wider than the schedule fades all of it; one frequency alone keeps its value, as
    in the authors' code. The paper calls the method CoPE, as another method is called too (see
    ``posenc.CoPE``).

    Args:
        of: The schedule to clip; its attention factor is kept.
        count: n; 20 in the authors' code for heads of 128 channels.
        soft: Whether they fade. Otherwise all n are 0, the hard clipping that the paper compares
            with.

    Raises:
        ValueError: ``count`` is no whole number from 0 on.

    Reference:
        Li et al. 2026, "CoPE: Clipped RoPE as A Scalable Free Lunch for Long Context LLMs"
        (arXiv:2602.05258); ``LlamaRotaryEmbedding`` in ``modeling_cope.py`` of hrlics/CoPE.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> plain = Geometric(8, base=1e4)
        >>> [round(before / after, 3) if after else 0 for before, after in
        ...  zip(plain.wavelengths(), Clipped(plain, count=3).wavelengths(), strict=True)]
        [1.0, 1.0, 0.5, 0.0]
    """

    of: Schedule
    count: int = 20
    soft: bool = True

    def __post_init__(self):
        check_schedule(self, self.of)
        if not isinstance(self.count, Integral) or isinstance(self.count, bool) or self.count < 0:
            raise ValueError(
                f"count is {self.count!r}; it says how many frequencies fade, so it must be a "
                f"whole number from 0 on."
            )
        if not isinstance(self.soft, bool):
            raise ValueError(f"soft is {self.soft!r}; it must be True or False.")
        self._settle(
            attention_factor=self.of.attention_factor, softmax_factor=self.of.softmax_factor
        )

    @property
    def clipped(self) -> int:
        """How many frequencies it changes."""
        return min(self.count, len(self.of))

    def radians(self) -> tuple[Decimal, ...]:
        every = self.of.radians()
        kept = len(every) - self.clipped
        fading = zip(every[kept:], self._gains(), strict=True)
        return every[:kept] + tuple(w * gain for w, gain in fading)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them."""
        every, count = self.of.float32(form).clone(), self.clipped
        if not count:
            return every
        gains = 0.5 * (1.0 + torch.linspace(0.0, pi, count).cos())
        every[len(every) - count :] *= gains if self.soft else torch.zeros(count)
        return every

    def _gains(self) -> tuple[Decimal, ...]:
        if not self.soft:
            return (Decimal(0),) * self.clipped
        last = max(self.clipped - 1, 1)
        return tuple((1 + cos_half_turns(Fraction(j, last))) / 2 for j in range(self.clipped))


def cos_half_turns(share: Fraction) -> Decimal:
    """cos(π · share) for a share from 0 to 1, to the digits of the context.

    Example:
        >>> cos_half_turns(Fraction(1)), float(cos_half_turns(Fraction(1, 3)))
        (Decimal('-1'), 0.5)
    """
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
