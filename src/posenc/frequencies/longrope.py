"""LongRoPE: two searched lists of divisors, one for short and one for long sequences."""

from dataclasses import dataclass
from decimal import localcontext

from posenc.frequencies.divided import Divided
from posenc.frequencies.schedule import (
    PRECISION,
    Number,
    Schedule,
    check_positive,
    exact,
)


@dataclass(frozen=True)
class LongRoPE:
    """ω_i / e_i with e the ``short`` or the ``long`` list; ``at(length)`` is the schedule.

    Cosines and sines are multiplied with √(1 + ln s / ln L0), in both cases.

    The choice is the caller's, by a length that is stated: one for a whole batch, or one for each
    of two groups. The data never make it, so a long row cannot change a short one beside it.

    Args:
        of: The schedule to rescale.
        short: e_i up to the trained length.
        long: e_i above it.
        trained_length: L0, in tokens.
        factor: s, target length over trained length.
        attention: The attention factor, in place of the one that follows from s.

    Raises:
        ValueError: A list does not have one positive number a frequency, or another number is not
            positive and finite.

    Reference:
        Ding et al. 2024, "LongRoPE" (arXiv:2402.13753); the attention factor stands in the code of
        Phi-3 and in ``longrope`` of transformers.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> longrope = LongRoPE(Geometric(4), (1.0, 1.0), (1.0, 32.0), 4096, factor=32.0)
        >>> longrope.at(4096).divisors, longrope.at(4097).divisors
        ((1.0, 1.0), (1.0, 32.0))
        >>> longrope.attention_factor
        1.1902380714238083
    """

    of: Schedule
    short: tuple[Number, ...]
    long: tuple[Number, ...]
    trained_length: int
    factor: Number = 1.0
    attention: float | None = None

    def __post_init__(self):
        object.__setattr__(self, "short", tuple(self.short))
        object.__setattr__(self, "long", tuple(self.long))
        check_positive(self, factor=self.factor, trained_length=self.trained_length)
        if self.trained_length < 2:  # its logarithm divides
            raise ValueError(
                f"LongRoPE: trained_length is {self.trained_length}; it must be 2 or more tokens."
            )
        for length in (self.trained_length, self.trained_length + 1):
            self.at(length)  # a bad list is reported where it is given

    @property
    def attention_factor(self) -> float:
        """√(1 + ln s / ln L0), or what was given in its place."""
        if self.attention is not None:
            return self.attention
        if self.factor <= 1:
            return 1.0
        with localcontext(PRECISION):
            return float((1 + exact(self.factor).ln() / exact(self.trained_length).ln()).sqrt())

    def at(self, length: int) -> Divided:
        """The schedule for sequences of ``length`` tokens: long above the trained length."""
        divisors = self.long if length > self.trained_length else self.short
        return Divided(self.of, divisors, self.attention_factor)
