"""The sinusoidal conventions in public use, by name.

Most go back to one ambiguity: the paper's i counts pairs of channels, and read as a channel index
it gives ``double_exponent``."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from posenc.arguments import check_whole
from posenc.frequencies import Powers

Function = Literal["sin", "cos", "zero"]


@dataclass(frozen=True)
class Channel:
    """What one channel of an encoding holds: function((position + first) / base^exponent)."""

    function: Function
    exponent: Fraction
    frequency: float
    first: int


@dataclass(frozen=True)
class SinCosChannels:
    """Which sines and cosines an encoding of one width consists of, and in which channels."""

    sines: Powers
    cosines: Powers
    sine_channels: range
    cosine_channels: range

    @cached_property
    def paired(self) -> bool:
        """Whether sines and cosines share all of their frequencies."""
        return self.sines == self.cosines


@dataclass(frozen=True)
class Interleaved:
    """sin in channel 2i, cos in channel 2i + 1, both at n^(−2i/d)."""

    def __call__(self, dim: int, base: float) -> SinCosChannels:
        sines, cosines = range(0, dim, 2), range(1, dim, 2)
        exponents = tuple(sines)
        return SinCosChannels(
            Powers(base, exponents, dim),
            Powers(base, exponents[: len(cosines)], dim),
            sines,
            cosines,
        )


@dataclass(frozen=True)
class Halves:
    """[sin | cos] at n^(−i / (h − shift)), h = dim // 2; ``flip`` puts the cosines first."""

    shift: int = 0
    flip: bool = False

    def __call__(self, dim: int, base: float) -> SinCosChannels:
        half = dim // 2
        if half <= self.shift:
            raise ValueError(f"dim is {dim}; it must be {2 * self.shift + 2} or more.")
        # The fraction stands as the formula's users compute it, so that float32 rounds alike.
        powers = (
            Powers(base, tuple(range(half)), half - self.shift)
            if self.shift
            else Powers(base, tuple(range(0, 2 * half, 2)), 2 * half)
        )
        front, back = range(half), range(half, 2 * half)
        sines, cosines = (back, front) if self.flip else (front, back)
        return SinCosChannels(powers, powers, sines, cosines)


@dataclass(frozen=True)
class PerChannel:
    """sin and cos alternate, channel j at the frequency n^(−step·(j + first)/d) of its own."""

    step: int = 1
    first: int = 0

    def __call__(self, dim: int, base: float) -> SinCosChannels:
        sines, cosines = range(self.first % 2, dim, 2), range(1 - self.first % 2, dim, 2)

        def powers(channels: range) -> Powers:
            return Powers(base, tuple(self.step * (j + self.first) for j in channels), dim)

        return SinCosChannels(powers(sines), powers(cosines), sines, cosines)


@dataclass(frozen=True)
class Convention:
    """A named way to lay sines and cosines over the channels.

    Attributes:
        formula: The formula for one channel; j counts channels from 0, h is dim // 2.
        used_by: Who uses it.
        waveform: From (dim, base) to the sines and cosines.
        first: The number of the first position: 0, or 1 where positions are counted from one.
        odd: How an odd width ends: in a ``sine`` (``Interleaved``), a column of ``zero``
            (``Halves``), ``unpaired`` (``PerChannel``); refused if ``None``.
    """

    name: str
    formula: str
    used_by: str
    waveform: Interleaved | Halves | PerChannel
    first: int = 0
    odd: Literal["sine", "zero", "unpaired"] | None = None

    def sincos(self, dim: int, base: float) -> SinCosChannels:
        """The sines and cosines for one width."""
        check_whole(dim=dim)
        if dim % 2 and self.odd is None:
            raise ValueError(f"dim is {dim}; the {self.name!r} convention has no odd width.")
        return self.waveform(dim, base)

    def channel(self, index: int, dim: int, base: float = 10_000.0) -> Channel:
        """The facts of one channel."""
        if not 0 <= index < dim:
            raise ValueError(f"dimension is {index}; it must be one of 0 … {dim - 1}.")
        return self.channels(dim, base)[index]

    def channels(self, dim: int, base: float = 10_000.0) -> tuple[Channel, ...]:
        """The facts of all channels, in their order."""
        sincos = self.sincos(dim, base)
        sides: tuple[tuple[Function, range, Powers], ...] = (
            ("sin", sincos.sine_channels, sincos.sines),
            ("cos", sincos.cosine_channels, sincos.cosines),
        )
        found = [Channel("zero", Fraction(0), 0.0, self.first)] * dim
        for function, channels, powers in sides:
            for index, exponent in zip(channels, powers.exponents, strict=True):
                frequency = float(powers.base) ** -float(exponent)
                found[index] = Channel(function, exponent, frequency, self.first)
        return tuple(found)


def timestep(shift: int = 0, flip: bool = True) -> Convention:
    """The diffusion timestep embedding: n^(−i / (h − shift)), [cos | sin] or [sin | cos].

    Timesteps are ``posenc.positions.Coordinates``; diffusers' ``scale`` multiplies these, as
    ``Coordinates(timesteps, scale=1000)``, and ``max_period`` is the base n.

    Args:
        shift: ``downscale_freq_shift``: 0 in DiT, GLIDE and Stable Diffusion, 1 in DDPM.
        flip: ``flip_sin_to_cos``: whether cosines come first, as in all of these but DDPM.

    Reference:
        Ho et al. 2020, "DDPM" (arXiv:2006.11239); ``get_timestep_embedding`` of diffusers.

    Example:
        >>> timestep().channel(0, dim=8).function, timestep(flip=False).channel(0, dim=8).function
        ('cos', 'sin')
    """
    order = "[cos | sin]" if flip else "[sin | cos]"
    divisor = f"(h − {shift})" if shift else "h"
    said = ", ".join([f"shift={shift}"] * bool(shift) + ["flip=False"] * (not flip))
    return Convention(
        name=f"timestep({said})" if said else "timestep",
        formula=f"{order} of p / n^(i / {divisor})",
        used_by="diffusers, DiT, GLIDE",
        waveform=Halves(shift, flip),
        odd="zero",
    )


ALL = (
    Convention(
        name="paper",
        formula="PE(p, 2i) = sin(p / n^(2i/d)), PE(p, 2i+1) = cos(p / n^(2i/d))",
        used_by="Vaswani et al. 2017, the PyTorch tutorial, d2l, keras-hub, DistilBERT",
        waveform=Interleaved(),
        odd="sine",
    ),
    Convention(
        name="concatenated",
        formula="[sin | cos] of p / n^(2i/d)",
        used_by="MarianMT and Pegasus in transformers, RoFormer, CTRL, XLNet, the TensorFlow "
        "tutorial",
        waveform=Halves(),
    ),
    Convention(
        name="tensor2tensor",
        formula="[sin | cos] of p / n^(i / (h − 1))",
        used_by="tensor2tensor, the Marian toolkit, fairseq, M2M100, Whisper, SpeechT5, XGLM",
        waveform=Halves(shift=1),
        odd="zero",
    ),
    timestep(),
    Convention(
        name="per_dimension_one_based",
        formula="even k: sin(t / n^(k/d)), odd k: cos(t / n^(k/d)), with t = p + 1 and k = j + 1",
        used_by="lecture slides",
        waveform=PerChannel(first=1),
        first=1,
        odd="unpaired",
    ),
    Convention(
        name="per_dimension",
        formula="even j: sin(p / n^(j/d)), odd j: cos(p / n^(j/d))",
        used_by="Caffe2",
        waveform=PerChannel(),
        odd="unpaired",
    ),
    Convention(
        name="double_exponent",
        formula="even j: sin(p / n^(2j/d)), odd j: cos(p / n^(2j/d))",
        used_by="old checkpoints: the paper's pair index i read as the channel index j",
        waveform=PerChannel(step=2),
        odd="unpaired",
    ),
)
CONVENTIONS = {convention.name: convention for convention in ALL}
"""Every convention by its name."""
