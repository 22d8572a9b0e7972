"""One schedule for each request, chosen once by the length that it may reach."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from posenc.arguments import check_whole
from posenc.frequencies.longrope import LongRoPE
from posenc.frequencies.powers import Geometric
from posenc.frequencies.schedule import Number, Schedule
from posenc.frequencies.yarn import YaRN


@dataclass(frozen=True)
class ByLength:
    """The first of several schedules whose length is enough; ``at(length)`` is the schedule.

    A request states once how long it may become and keeps that schedule, by which its cached keys
    are encoded. Short requests keep the frequencies of training.

    Args:
        steps: Pairs of a length and the schedule of requests up to it, by length. The schedules
            share their number of frequencies and the factor of the softmax scale, as a batch does.

    Example:
        >>> by_length = ByLength.yarn(Geometric(128, 1e6), trained_length=32768)
        >>> [type(by_length.at(length)).__name__ for length in (32768, 32769, 131072)]
        ['Geometric', 'YaRN', 'YaRN']
        >>> by_length.at(40_000).factor, by_length.at(100_000).factor
        (2.0, 4.0)
    """

    steps: tuple[tuple[int, Schedule], ...]

    def __post_init__(self):
        object.__setattr__(self, "steps", tuple(map(tuple, self.steps)))
        lengths, schedules = zip(*self.steps, strict=True)
        if list(lengths) != sorted(set(lengths)):
            raise ValueError(f"Steps have the lengths {lengths}; they must grow.")
        shared = {(len(schedule), schedule.softmax_factor) for schedule in schedules}
        if len(shared) > 1:
            raise ValueError(f"Steps have {shared} frequencies and softmax factors; share them.")

    @classmethod
    def yarn(
        cls, of: Geometric, trained_length: int, factors: Iterable[Number] = (2.0, 4.0)
    ) -> "ByLength":
        """``of`` up to the trained length L0, and YaRN by each factor s up to s·L0."""
        schedules = [YaRN(of, factor, trained_length) for factor in factors]
        return cls(extended(of, trained_length, schedules))

    @classmethod
    def longrope(cls, longrope: LongRoPE, longest: int) -> "ByLength":
        """The short list up to the trained length, and the long one up to ``longest``."""
        trained = longrope.trained_length
        return cls(((trained, longrope.at(trained)), (longest, longrope.at(trained + 1))))

    @property
    def longest(self) -> int:
        """The length that no request exceeds."""
        return self.steps[-1][0]

    def index(self, length: int) -> int:
        """Which step requests of this length take."""
        check_whole(length=length)
        for index, (enough, _) in enumerate(self.steps):
            if length <= enough:
                return index
        raise ValueError(f"length is {length}; the longest step is up to {self.longest}.")

    def at(self, length: int) -> Schedule:
        """The schedule of requests that reach up to ``length`` tokens, ``longest`` at most."""
        return self.steps[self.index(length)][1]

    def key(self, length: int) -> str:
        """``schedule_key`` of ``at(length)``: what a prefix cache is kept apart by."""
        return schedule_key(self.at(length))


def extended(
    of: Schedule, trained_length: int, schedules: Sequence[YaRN]
) -> tuple[tuple[int, Schedule], ...]:
    """The steps of ``of`` up to the trained length L0, and of YaRN by each factor s up to s·L0."""
    further = ((int(yarn.factor * trained_length), yarn) for yarn in schedules)
    return ((trained_length, of), *further)


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
