"""The step from one schedule to another."""

from dataclasses import dataclass
from decimal import Decimal

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import Schedule, check_schedule


@dataclass(frozen=True)
class Difference(Schedule):
    """ω_i − ν_i: turning by it takes a rotation by ν to one by ω.

    The fixed-point turns are subtracted as integers, so phases compose without any error.

    Args:
        to: ω.
        since: ν, with as many frequencies.

    Raises:
        ValueError: The numbers of frequencies differ.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Difference(Geometric(4, base=4.0), Geometric(4, base=16.0)).wavelengths()
        (inf, 25.132741228718345)
    """

    to: Schedule
    since: Schedule

    def __post_init__(self):
        for each in (self.to, self.since):
            check_schedule(self, each)
        if len(self.to) != len(self.since):
            raise ValueError(
                f"One schedule has {len(self.to)} frequencies and the other {len(self.since)}; "
                f"they must have as many."
            )
        # What takes the attention factor of the one to that of the other.
        self._settle(attention_factor=self.to.attention_factor / self.since.attention_factor)

    def radians(self) -> tuple[Decimal, ...]:
        pairs = zip(self.to.radians(), self.since.radians(), strict=True)
        return tuple(after - before for after, before in pairs)

    def turns(self) -> tuple[int, ...]:
        pairs = zip(self.to.turns(), self.since.turns(), strict=True)
        return tuple(after - before for after, before in pairs)

    def __len__(self) -> int:
        return len(self.to)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.to.float32(form) - self.since.float32(form)
