"""What a scaled schedule does to each pair: keep it, mix, or stretch it in full."""

from dataclasses import dataclass
from typing import Literal

from posenc.frequencies import Schedule

Band = Literal["kept", "mixed", "stretched"]


@dataclass(frozen=True)
class Scaling:
    """A schedule beside the plain one."""

    #: wavelengths of the plain schedule, in positions; negative of pairs that turn backwards
    before: tuple[float, ...]
    after: tuple[float, ...]  #: those of the scaled one
    bands: tuple[Band, ...]  #: what happened to each pair
    turns: tuple[float, ...]  #: turns of each pair in the trained length, before
    unseen: int  #: number of pairs that never completed a turn in the trained length
    unseen_after: int  #: number of pairs that complete none in the target length, after
    attention_factor: float  #: what cosines and sines are multiplied with

    def count(self, band: Band) -> int:
        """Number of pairs in a band."""
        return self.bands.count(band)


def scaling_of(
    plain: Schedule, scaled: Schedule, *, trained_length: int, target_length: int
) -> Scaling:
    """Compare two schedules pair by pair.

    A pair is kept where its wavelength changed by less than one part in a million, and stretched
    where it grew as much as that of any pair; the others are mixed.

    Example:
        >>> from posenc.frequencies import Geometric, YaRN
        >>> plain = Geometric(128)
        >>> bands = scaling_of(plain, YaRN(plain, 16.0, 4096), trained_length=4096,
        ...                    target_length=65536)
        >>> bands.count("kept"), bands.count("mixed"), bands.count("stretched"), bands.unseen
        (21, 25, 18, 18)
    """
    before, after = plain.wavelengths(), scaled.wavelengths()
    growth = [1.0 if a == b else b / a for a, b in zip(before, after, strict=True)]
    most = max(growth)  # infinite where a pair no longer turns
    bands: list[Band] = [
        "kept" if abs(g - 1) < 1e-6
        else "stretched" if g == most or abs(g / most - 1) < 1e-6
        else "mixed"
        for g in growth
    ]  # fmt: skip
    turns = tuple(trained_length / abs(wavelength) for wavelength in before)
    unseen = sum(each < 1 for each in turns)
    unseen_after = sum(abs(wavelength) > target_length for wavelength in after)
    return Scaling(
        before, after, tuple(bands), turns, unseen, unseen_after, scaled.attention_factor
    )
