"""Llama 3.1's rescaling: by wavelength, with a smooth middle."""

from dataclasses import dataclass
from decimal import Decimal
from math import pi

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_positive_number, check_whole
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.powers import geometric_of, writer
from posenc.frequencies.schedule import TWO_PI, Number, Rescaled, Schedule, check_extension, exact


@dataclass(frozen=True)
class Llama3(Rescaled):
    """ω_i · (1 − (1 − u_i)(1 − 1/s)),   u_i = clamp((L0/λ_i − low) / (high − low), 0, 1)

    with wavelength λ_i = 2π/ω_i. What turns more than ``high`` times in the trained length L0 is
    left alone, what turns less than ``low`` times is divided by s. Where the two are one number, as
    in Llama 4 Scout, there is a step and no middle. With low=1 and high=32 this is NTK-by-parts as
    the paper of YaRN states it; see ``YaRN``. A frequency below 0 makes as many turns as its size.

    Args:
        of: The schedule to rescale; its attention factor is kept.
        factor: s; 1 changes nothing, bit for bit.
        low: Turns in the trained length up to which a frequency is divided in full.
        high: Turns from which on it stays.
        trained_length: L0, in tokens.

    Reference:
        Meta 2024, ``apply_scaling`` in the reference code of Llama 3.1; ``llama3`` in transformers;
        Peng et al. 2023, "YaRN", equations 17 to 20 (arXiv:2309.00071).

    Example:
        >>> from posenc.frequencies import Geometric
        >>> scaled = Llama3(Geometric(128, base=500_000.0))
        >>> [round(scaled.wavelengths()[i] / scaled.of.wavelengths()[i], 3) for i in (0, 32, 63)]
        [1.0, 2.695, 8.0]
    """

    factor: Number = 8.0
    low: float = 1.0
    high: float = 4.0
    trained_length: int = 8192

    def __post_init__(self):
        super().__post_init__()
        check_extension(self.factor)
        check_whole(trained_length=self.trained_length)
        check_positive_number(low=self.low, high=self.high)
        if self.low > self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; low must be the smaller.")

    def radians(self) -> tuple[Decimal, ...]:
        low, high, slowing = exact(self.low), exact(self.high), 1 - 1 / exact(self.factor)

        def slowed(w: Decimal) -> Decimal:
            turns = exact(self.trained_length) * abs(w) / TWO_PI
            if low == high:
                return w if turns >= low else w * (1 - slowing)
            kept = min(max((turns - low) / (high - low), Decimal(0)), Decimal(1))
            return w * (1 - (1 - kept) * slowing)

        return tuple(slowed(w) for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as transformers' float32 code has them."""
        plain, factor = self.of.float32(form), float(self.factor)
        length, low, high = self.trained_length, float(self.low), float(self.high)
        wavelengths = 2 * pi / plain.abs()
        scaled = torch.where(wavelengths > length / low, plain / factor, plain)
        if low == high:
            return scaled  # nothing lies between
        smooth = (length / wavelengths - low) / (high - low)
        middle = ~(wavelengths < length / high) & ~(wavelengths > length / low)
        return torch.where(middle, (1 - smooth) * scaled / factor + smooth * scaled, scaled)


def _read(rope: Rope, _length: int | None) -> Schedule:
    return Llama3(
        geometric_of(rope),
        rope.needed("factor"),
        low=rope.needed("low_freq_factor"),
        high=rope.needed("high_freq_factor"),
        trained_length=rope.length("trained_length"),
    )


FIELDS = {"factor": "factor", "low_freq_factor": "low", "high_freq_factor": "high"}
FIELDS |= {"original_max_position_embeddings": "trained_length"}

ROPE_TYPE = RopeType(
    "llama3", _read, writer(Llama3, FIELDS), keys=tuple(FIELDS), keeps_trained_length=True
)
