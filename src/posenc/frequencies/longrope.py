"""LongRoPE: two searched lists of divisors, one for short and one for long sequences."""

from dataclasses import dataclass
from decimal import localcontext
from typing import Any

from posenc.arguments import check_whole
from posenc.frequencies.given import Divided
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.powers import geometric_of
from posenc.frequencies.schedule import PRECISION, Number, Schedule, check_extension, exact


@dataclass(frozen=True)
class LongRoPE:
    """ω_i / e_i with e the ``short`` or the ``long`` list; ``at(length)`` is the schedule.

    Cosines and sines are multiplied with √(1 + ln s / ln L0), in both cases. The paper leaves the
    first tokens of a text unscaled besides: see ``posenc.StartTokenRotary``.

    The caller states the length. It is never read from the data, so a long row cannot change a
    short one in its batch.

    Args:
        of: The schedule to rescale.
        short: e_i up to the trained length.
        long: e_i above it.
        trained_length: L0, in tokens.
        factor: s, target length over trained length.
        attention: The attention factor, in place of the one that follows from s.

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
        check_extension(self.factor)
        check_whole(2, trained_length=self.trained_length)  # its logarithm divides
        for name, length in (("short", 1), ("long", self.trained_length + 1)):
            object.__setattr__(self, name, self.at(length).divisors)  # checked where it is given

    @property
    def attention_factor(self) -> float:
        """What cosines and sines are multiplied with, at any length."""
        return self.at(1).attention_factor

    def _own_factor(self) -> float:
        if self.attention is not None:
            return self.attention
        with localcontext(PRECISION):
            return float((1 + exact(self.factor).ln() / exact(self.trained_length).ln()).sqrt())

    def at(self, length: int) -> Divided:
        """The schedule for sequences of ``length`` tokens: long above the trained length."""
        check_whole(length=length)
        divisors = self.long if length > self.trained_length else self.short
        return Divided(self.of, divisors, self._own_factor())


def _read(rope: Rope, length: int | None) -> Schedule:
    trained, given = rope.length("trained_length"), rope.values
    length = length or trained
    # Phi-3.5-MoE gives one attention factor for short sequences and one for long ones.
    scale = given.get("long_mscale" if length > trained else "short_mscale")
    return LongRoPE(
        geometric_of(rope),
        rope.needed("short_factor"),
        rope.needed("long_factor"),
        trained,
        extension(rope),
        scale if scale is not None else given.get("attention_factor"),
    ).at(length)


def extension(rope: Rope) -> Number:
    """By how much the length is extended; 1 where the target is below the trained length."""
    told = rope.values.get("factor")
    return max(rope.factor or 1.0, 1.0) if told is None else told


def _is_early_phi(named: str, values: Any, family: str) -> bool:
    """The first files of Phi-3 called it yarn."""
    return named == "yarn" and "short_factor" in values and family.startswith(("phi3", "phi4"))


ROPE_TYPE = RopeType(
    "longrope",
    _read,  # not written: one of the two lists does not tell the other
    keys=(
        "factor",
        "original_max_position_embeddings",
        "short_factor",
        "long_factor",
        "attention_factor",
        "short_mscale",
        "long_mscale",
    ),
    lists=("short_factor", "long_factor"),
    aliases=("su",),
    implied_factor=True,
    keeps_trained_length=True,
    claims=_is_early_phi,
)
