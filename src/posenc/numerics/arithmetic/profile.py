"""A profile: how somebody's code computes frequencies, angles and cosines, and rotates."""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from posenc.frequencies import Geometric, Linear
from posenc.frequencies.schedule import Schedule
from posenc.numerics.pairing import Pairing, split

Evidence = Literal["run", "table", "read"]
Layout = Literal["cos_sin_cache", "cos_sin", "complex", "halves"]
Place = Literal["float32", "content"]


class Profile:
    """The arithmetic of one public implementation of rotary encodings, in its order and dtypes.

    Attributes:
        name: What it is called here.
        source: Its files, in its public repository.
        version: The version that was read, and run.
        evidence: ``run`` where tests hold it bit for bit against the package's own files, on a
            CPU; ``table`` where they hold its table so, and its kernel was read; ``read`` where its
            source was only read.
        said: What it does, in one sentence.
        pairings: Which channels it can pair, its usual one first.
        schedules: The schedules that it has, of plain frequencies.
        layout: How it keeps a table.
        linear: What linear scaling changes: frequencies, or positions, which are multiplied with
            1 / factor or divided by it.
        keeps: The dtype in which cosines meet content: float32, or that of content.
        rotates: The dtype of products and sums.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    version: ClassVar[str]
    evidence: ClassVar[Evidence]
    said: ClassVar[str]
    pairings: ClassVar[tuple[Pairing, ...]] = ("half", "interleaved")
    schedules: ClassVar[tuple[type[Schedule], ...]]
    layout: ClassVar[Layout] = "halves"
    linear: ClassVar[Literal["frequencies", "multiplied", "divided"]] = "frequencies"
    keeps: ClassVar[Place] = "float32"
    rotates: ClassVar[Place] = "float32"

    def check(self, schedule: Schedule, pairing: Pairing | None = None) -> None:
        """Refuse a schedule or pairing that this implementation does not have."""
        if not self.has(schedule):
            known = ", ".join(each.__name__ for each in self.schedules)
            raise ValueError(f"{self.name} has no {schedule!r}; it has {known}, of an even width.")
        if pairing is not None and pairing not in self.pairings:
            raise ValueError(f"{self.name} pairs {self.pairings}, not {pairing!r}.")

    def has(self, schedule: Schedule) -> bool:
        """Whether it has a schedule, that rescales plain frequencies if any, of an even width."""
        plain = getattr(schedule, "of", schedule)
        if isinstance(plain, Geometric) and plain.dim % 2:
            return False
        known = plain is schedule or isinstance(plain, Geometric)
        return known and isinstance(schedule, self.schedules)

    def frequencies(self, schedule: Schedule) -> Float32[Tensor, "pairs"]:
        """One number a pair, as it is kept in float32."""
        if isinstance(schedule, Linear) and self.linear != "frequencies":
            schedule = schedule.of
        return schedule.float32("float32")

    def angles(
        self,
        positions: Int64[Tensor, "*shape"],
        frequencies: Float32[Tensor, "pairs"],
        schedule: Schedule,
    ) -> Float32[Tensor, "*shape pairs"]:
        """position × frequency, both in float32, rounded once."""
        places = positions.float()
        if isinstance(schedule, Linear) and self.linear != "frequencies":
            factor = float(schedule.factor)
            places = places * (1 / factor) if self.linear == "multiplied" else places / factor
        return places.unsqueeze(-1) * frequencies

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

    def kept(self, content: torch.dtype) -> torch.dtype:
        """The dtype in which cosines meet content of a dtype."""
        return content if self.keeps == "content" else torch.float32

    def rotate(
        self,
        x: Float[Tensor, "*shape width"],
        cos: Float[Tensor, "*rows pairs"],
        sin: Float[Tensor, "*rows pairs"],
        pairing: Pairing,
    ) -> Float[Tensor, "*shape width"]:
        """Content rotated; cosines and sines come in float32, before they are kept."""
        if self.keeps == "content":
            cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        if self.rotates == "content":
            return rotated(x, cos, sin, pairing)
        wide = torch.promote_types(x.dtype, torch.float32)  # float64 stays, though no engine has it
        return rotated(x.to(wide), cos.to(wide), sin.to(wide), pairing).to(x.dtype)


def rotated(
    x: Float[Tensor, "*shape width"], cos: Tensor, sin: Tensor, pairing: Pairing
) -> Float[Tensor, "*shape width"]:
    """Two products and their sum, each rounded to the dtype of content."""
    a, b = split(x, pairing)
    first, second = a * cos - b * sin, b * cos + a * sin
    if pairing == "interleaved":
        return torch.stack((first, second), dim=-1).flatten(-2)
    return torch.cat((first, second), dim=-1)
