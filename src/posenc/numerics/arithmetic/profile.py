"""What a profile is: where somebody's code computes frequencies, angles and cosines, and how it
rotates."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from posenc.frequencies import Geometric, Linear
from posenc.frequencies.schedule import Schedule
from posenc.numerics.pairing import Pairing, split

Evidence = Literal["run", "table", "read"]
Layout = Literal["cos_sin_cache", "cos_sin", "complex", "halves"]


class Profile(ABC):
    """The arithmetic of one public implementation of rotary encodings, in its order and dtypes.

    Attributes:
        name: What it is called here.
        source: Its files, in its public repository.
        version: The version that was read, and run.
        evidence: ``run`` where tests hold it bit for bit against the package's own files;
            ``table`` where they hold its table so, and its kernel for a GPU was read; ``read``
            where its source was read and not run.
        said: What it does, in one sentence.
        pairings: Which channels it can pair, its usual one first.
        schedules: The schedules that it has, of plain frequencies.
        layout: How it keeps a table.
    """

    name: str
    source: str
    version: str
    evidence: Evidence
    said: str
    pairings: tuple[Pairing, ...]
    schedules: tuple[type[Schedule], ...]
    layout: Layout

    def check(self, schedule: Schedule, pairing: Pairing | None = None) -> None:
        """Refuse what this implementation cannot do.

        Raises:
            ValueError: It has no such schedule, or does not pair channels so.
        """
        if not self.has(schedule):
            known = ", ".join(each.__name__ for each in self.schedules)
            raise ValueError(
                f"arithmetic is {self.name!r}, which has no {schedule!r}; it has {known}, of an "
                f"even width, and rescales plain frequencies. Use arithmetic='exact'."
            )
        if pairing is not None and pairing not in self.pairings:
            raise ValueError(
                f"arithmetic is {self.name!r}, which does not pair channels {pairing!r}; it has "
                f"{' and '.join(map(repr, self.pairings))}. Convert the weights with "
                f"convert_projection, or use arithmetic='exact'."
            )

    def has(self, schedule: Schedule) -> bool:
        """Whether it has a schedule: one of its own, that rescales plain frequencies if any.

        Of an odd width some implementations make a frequency less than others, and some stop.
        """
        plain = getattr(schedule, "of", schedule)
        if isinstance(plain, Geometric) and plain.dim % 2:
            return False
        known = plain is schedule or isinstance(plain, Geometric)
        return known and isinstance(schedule, self.schedules)

    @abstractmethod
    def frequencies(self, schedule: Schedule) -> Float32[Tensor, "pairs"]:
        """One number a pair, as it is kept in float32."""

    def angles(
        self,
        positions: Int64[Tensor, "*shape"],
        frequencies: Float32[Tensor, "pairs"],
        schedule: Schedule,
    ) -> Float32[Tensor, "*shape pairs"]:
        """position × frequency, both in float32, rounded once."""
        return positions.float().unsqueeze(-1) * frequencies

    def cos_sin(
        self, angles: Float32[Tensor, "*shape pairs"], factor: float
    ) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
        """Cosines and sines in float32, then the attention factor."""
        cos, sin = angles.cos(), angles.sin()
        return (cos, sin) if factor == 1.0 else (cos * factor, sin * factor)

    def table(
        self, positions: Int64[Tensor, "*shape"], schedule: Schedule
    ) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
        """Cosines and sines in float32, before they are kept."""
        frequencies = self.frequencies(schedule).to(positions.device)
        angles = self.angles(positions, frequencies, schedule)
        return self.cos_sin(angles, schedule.attention_factor)

    @abstractmethod
    def kept(self, content: torch.dtype) -> torch.dtype:
        """The dtype in which cosines meet content of a dtype."""

    @abstractmethod
    def rotate(
        self,
        x: Float[Tensor, "*shape width"],
        cos: Float[Tensor, "*rows pairs"],
        sin: Float[Tensor, "*rows pairs"],
        pairing: Pairing,
    ) -> Float[Tensor, "*shape width"]:
        """Content rotated; cosines and sines come in float32, before they are kept."""


def of_scaled_positions(positions: Tensor, frequencies: Tensor, schedule: Schedule) -> Tensor:
    """Angles where linear scaling is a factor of positions, not of frequencies."""
    places = positions.float()
    if isinstance(schedule, Linear):
        places = places * (1 / float(schedule.factor))
    return places.unsqueeze(-1) * frequencies


def in_float32(
    x: Float[Tensor, "*shape width"], cos: Tensor, sin: Tensor, pairing: Pairing
) -> Float[Tensor, "*shape width"]:
    """Every product and sum in float32, and the result rounded once.

    Content in float64 stays in it; no engine is made for that.

    Example:
        >>> in_float32(torch.tensor([1.0, 2.0]), torch.tensor([0.0]), torch.tensor([1.0]), "half")
        tensor([-2.,  1.])
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    a, b = (channels.to(wide) for channels in split(x, pairing))
    cos, sin = cos.to(wide), sin.to(wide)
    return joined(a * cos - b * sin, b * cos + a * sin, pairing).to(x.dtype)


def in_dtype_of_content(
    x: Float[Tensor, "*shape width"], cos: Tensor, sin: Tensor, pairing: Pairing
) -> Float[Tensor, "*shape width"]:
    """Two products and their sum, each rounded to the dtype of content."""
    a, b = split(x, pairing)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return joined(a * cos - b * sin, b * cos + a * sin, pairing)


def joined(first: Tensor, second: Tensor, pairing: Pairing) -> Tensor:
    """The first and the second channels of all pairs, in the places of a pairing.

    Example:
        >>> joined(torch.tensor([1, 2]), torch.tensor([3, 4]), "interleaved")
        tensor([1, 3, 2, 4])
    """
    if pairing == "interleaved":
        return torch.stack((first, second), dim=-1).flatten(-2)
    return torch.cat((first, second), dim=-1)
