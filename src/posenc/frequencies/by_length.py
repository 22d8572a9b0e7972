"""One schedule for each request, chosen once by the length that it may reach."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from numbers import Integral

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.longrope import LongRoPE
from posenc.frequencies.schedule import (
    Number,
    Schedule,
    check_length,
    check_schedule,
    listed,
    plain,
    plain_first,
)
from posenc.frequencies.yarn import YaRN


@dataclass(frozen=True)
class ByLength:
    """The first of several schedules whose length is enough; ``at(length)`` is the schedule.

    A request states once how long it may become, and keeps the schedule of that length for its
    life: keys that a cache holds were encoded by it. Short requests keep the frequencies of
    training, and a long one beside them changes nothing for them.

    Args:
        steps: Pairs of a length and the schedule of requests up to it, by length.

    Raises:
        TypeError: Steps are no pairs, or one holds no schedule.
        ValueError: There is no step, lengths do not grow, or schedules differ in their number of
            frequencies, or in the factor of the softmax scale, which a batch shares.

    Example:
        >>> by_length = ByLength.yarn(Geometric(128, 1e6), trained_length=32768)
        >>> [type(by_length.at(length)).__name__ for length in (32768, 32769, 131072)]
        ['Geometric', 'YaRN', 'YaRN']
        >>> by_length.at(40_000).factor, by_length.at(100_000).factor
        (2.0, 4.0)
    """

    steps: tuple[tuple[int, Schedule], ...]

    @plain_first
    def __post_init__(self):
        object.__setattr__(self, "steps", _pairs(self.steps))
        if not self.steps:
            raise ValueError("ByLength: there are no steps; give (length, schedule), one at least.")
        before = 0
        for length, schedule in self.steps:
            check_schedule(self, schedule)
            if isinstance(length, bool) or not isinstance(length, Integral) or length <= before:
                raise ValueError(
                    f"ByLength: a step up to {length!r} follows one up to {before}; lengths must "
                    f"be whole numbers that grow."
                )
            before = length
        for name, values in (
            ("frequencies", {len(schedule) for _, schedule in self.steps}),
            ("softmax factors", {schedule.softmax_factor for _, schedule in self.steps}),
        ):
            if len(values) > 1:
                raise ValueError(
                    f"ByLength: its schedules have {' and '.join(map(str, sorted(values)))} "
                    f"{name}; requests of one batch must share them."
                )

    @classmethod
    def yarn(
        cls, of: Geometric, trained_length: int, factors: Iterable[Number] = (2.0, 4.0)
    ) -> "ByLength":
        """``of`` up to the trained length L0, and YaRN by each factor s up to s·L0.

        Raises:
            TypeError: ``factors`` are no numbers.
            ValueError: As of ``YaRN``, or they do not grow, from above 1 on.
        """
        trained_length = plain(trained_length)
        check_length("ByLength.yarn", trained_length)
        given = listed("ByLength.yarn", "factors", factors)
        schedules = [YaRN(of, factor, trained_length) for factor in given]
        return cls(extended("ByLength.yarn", of, trained_length, schedules))

    @classmethod
    def longrope(cls, longrope: LongRoPE, longest: int) -> "ByLength":
        """The short list up to the trained length, and the long one up to ``longest``.

        Raises:
            ValueError: ``longest`` is not above the trained length.

        Example:
            >>> longrope = LongRoPE(Geometric(4), (1.0, 1.0), (1.0, 32.0), 4096, factor=32.0)
            >>> ByLength.longrope(longrope, longest=131072).at(5000).divisors
            (1.0, 32.0)
        """
        trained = longrope.trained_length
        return cls(((trained, longrope.at(trained)), (longest, longrope.at(trained + 1))))

    @property
    def longest(self) -> int:
        """The length that no request exceeds."""
        return self.steps[-1][0]

    def index(self, length: int) -> int:
        """Which step requests of this length take.

        Raises:
            ValueError: The length is not positive, or above ``longest``.
        """
        if isinstance(length, bool) or not isinstance(length, Integral) or length < 1:
            raise ValueError(f"length is {length!r}; it must be a positive whole number of tokens.")
        for index, (enough, _) in enumerate(self.steps):
            if length <= enough:
                return index
        raise ValueError(
            f"A request of {length} tokens is longer than all steps; the last is up to "
            f"{self.longest}. Add a step, as ByLength.yarn(..., factors=(2, 4, 8))."
        )

    def at(self, length: int) -> Schedule:
        """The schedule of requests that reach up to ``length`` tokens.

        Raises:
            ValueError: As of ``index``.
        """
        return self.steps[self.index(length)][1]

    def key(self, length: int) -> str:
        """``schedule_key`` of ``at(length)``: what a prefix cache is kept apart by.

        Example:
            >>> by_length = ByLength.yarn(Geometric(128, 1e6), trained_length=32768)
            >>> keys = [by_length.key(length) for length in (100, 32768, 32769)]
            >>> keys[0] == keys[1], keys[1] == keys[2]
            (True, False)
        """
        return schedule_key(self.at(length))


def extended(
    owner: str, of: Schedule, trained_length: int, schedules: Sequence[YaRN]
) -> tuple[tuple[int, Schedule], ...]:
    """The steps of ``of`` up to the trained length L0, and of YaRN by each factor s up to s·L0.

    Raises:
        ValueError: These lengths do not grow; ``owner`` is told.
    """
    lengths = [trained_length, *(int(yarn.factor * trained_length) for yarn in schedules)]
    if any(before >= length for before, length in pairwise(lengths)):
        raise ValueError(
            f"{owner}: factors is {[yarn.factor for yarn in schedules]}, which reach up to "
            f"{lengths[1:]} tokens after a trained length of {trained_length}; each length must be "
            f"above the one before. Pass factors above 1 that grow, as (2.0, 4.0)."
        )
    return tuple(zip(lengths, (of, *schedules), strict=True))


def _pairs(steps: object) -> tuple[tuple[int, Schedule], ...]:
    """The steps as a tuple of pairs, or words that say what they should be."""
    try:
        return tuple((plain(length), of) for length, of in steps)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise TypeError(
            f"ByLength: steps is {steps!r}; it must be pairs of a length and a schedule, as "
            f"((8192, Geometric(128)), (32768, YaRN(Geometric(128), 4.0, 8192)))."
        ) from None


def schedule_key(schedule: Schedule) -> str:
    """A hash of all numbers of a schedule, the same on every machine and in every process.

    Two schedules have one key if every frequency (to 2^-192 turns) and both factors are equal,
    however they were written: YaRN by 1 has that of the schedule that it rescales.

    Example:
        >>> schedule_key(YaRN(Geometric(64), 1, 4096)) == schedule_key(Geometric(64))
        True
        >>> schedule_key(YaRN(Geometric(64), 2, 4096)) == schedule_key(Geometric(64))
        False
    """
    numbers = [f"{turns:x}" for turns in schedule.turns()]
    factors = [float(schedule.attention_factor).hex(), float(schedule.softmax_factor).hex()]
    return sha256(" ".join([*numbers, *factors]).encode()).hexdigest()
