"""Schedules of image and video generators: DyPE over the time of the denoising, and RIFLEx."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, isfinite, pi

from jaxtyping import Float32
from torch import Tensor

from posenc.arguments import check_positive_number, check_probability, check_whole
from posenc.frequencies.ntk import NTK, NTKByParts, Turns, check_geometric
from posenc.frequencies.powers import Geometric
from posenc.frequencies.schedule import (
    PRECISION,
    TWO_PI,
    Number,
    Rescaled,
    Schedule,
    exact,
    rational,
)


@dataclass(frozen=True)
class DyNTK:
    """NTK scaling by s^κ(t), κ(t) = λ_s · t^λ_t, at the time t of the denoising.

    t runs from 1, pure noise, to 0, the image: coarse structure is laid out with all of the
    extension (twice of it, by its logarithm), and detail with the frequencies of the training.
    ``at(length, time)`` is the schedule; s is length / trained length, and 1 below it.

    Args:
        of: The schedule of one axis.
        trained_length: The patches along that axis in training: 64 for FLUX.
        scale: λ_s.
        exponent: λ_t.

    Reference:
        Issachar et al. 2025, "DyPE: Dynamic Position Extrapolation for Ultra High Resolution
        Diffusion" (arXiv:2510.20766), κ in section 4; ``FluxPosEmbed`` in guyyariv/DyPE.

    Example:
        >>> dype = DyNTK(Geometric(56), trained_length=64)
        >>> dype.at(256, time=1.0).factor, dype.at(256, time=0.5).factor
        (Fraction(16, 1), Fraction(2, 1))
        >>> dype.at(256, time=0.0).turns() == Geometric(56).turns()
        True
    """

    of: Geometric
    trained_length: int
    scale: Number = 2.0
    exponent: Number = 2.0

    def __post_init__(self):
        check_geometric(self.of)
        check_whole(trained_length=self.trained_length)
        check_positive_number(scale=self.scale, exponent=self.exponent)

    def at(self, length: int, time: Number) -> NTK:
        """The schedule for so many patches, at the time t from 1 to 0."""
        factor = _extension(length, self.trained_length)
        return NTK(self.of, _power(factor, _kappa(self, time)))


@dataclass(frozen=True)
class DyYaRN:
    """NTK by parts, whose borders β and γ are multiplied with κ(t) = λ_s · t^λ_t.

    So fewer and fewer pairs are changed; at the end of the denoising, t = 0, none is. The attention
    factor stays 0.1·ln s + 1. ``at(length, time)`` is the schedule.

    Where borders lie past the last pair, as for FLUX from t = 0.02 on down, the authors' code
    interpolates pairs that should be as in training. Here they are as in training.

    Args:
        of: The schedule of one axis.
        trained_length: The patches along that axis in training: 64 for FLUX.
        scale: λ_s; 1 in the authors' code.
        exponent: λ_t; 2 there.
        beta: Turns between which NTK's frequencies go over to interpolated ones, at t = 1.
        gamma: Turns between which those of the training go over to NTK's.

    Reference:
        Issachar et al. 2025, "DyPE" (arXiv:2510.20766); ``get_1d_rotary_pos_embed`` in
        guyyariv/DyPE, which multiplies the borders (other code takes them to the power κ).

    Example:
        >>> dype = DyYaRN(Geometric(56), trained_length=64)
        >>> dype.at(256, time=1.0) == NTKByParts(Geometric(56), 4, 64)
        True
        >>> dype.at(256, time=0.5).gamma
        (Fraction(4, 1), Fraction(1, 2))
    """

    of: Geometric
    trained_length: int
    scale: Number = 1.0
    exponent: Number = 2.0
    beta: Turns = (1.25, 0.75)
    gamma: Turns = (16, 2)

    def __post_init__(self):
        check_positive_number(scale=self.scale, exponent=self.exponent)
        NTKByParts(self.of, 1, self.trained_length, self.beta, self.gamma)  # checks the rest

    def at(self, length: int, time: Number) -> Schedule:
        """The schedule for so many patches, at the time t from 1 to 0."""
        factor, kappa = _extension(length, self.trained_length), _kappa(self, time)
        if factor == 1:
            return self.of
        # At the end of all, borders of no turn at all: as far as a pair can be.
        least = max(kappa, Fraction(1, 10**12))

        def scaled(turns: Turns) -> Turns:
            return rational(turns[0]) * least, rational(turns[1]) * least

        borders = scaled(self.beta), scaled(self.gamma)
        return NTKByParts(self.of, factor, self.trained_length, *borders)


def _extension(length: int, trained_length: int) -> Fraction:
    check_whole(length=length)
    return max(Fraction(int(length), int(trained_length)), Fraction(1))


def _kappa(dype: DyNTK | DyYaRN, time: Number) -> Fraction:
    check_probability(time=time)
    return rational(dype.scale) * _power(rational(time), rational(dype.exponent))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """base^exponent, to 110 digits where it is no fraction."""
    if exponent.denominator == 1:
        return base**exponent.numerator
    with localcontext(PRECISION):
        return Fraction(exact(base) ** exact(exponent)) if base else Fraction(0)


@dataclass(frozen=True)
class RIFLEx(Rescaled):
    """ω_k → share · 2π / length: the intrinsic frequency makes less than one turn in a video.

    The others stay. k counts from 1, as in the paper; ``intrinsic_frequency`` finds it from the
    frame at which videos of the model begin to repeat.

    Args:
        of: The schedule of time.
        k: The number of the intrinsic frequency, from 1 on.
        length: The latent frames of the longer video.
        share: How much of a turn it makes; 0.9 in the authors' code, and 1 in the paper.

    Reference:
        Zhao et al. 2025, "RIFLEx: A Free Lunch for Length Extrapolation in Video Diffusion
        Transformers", equation 8 (arXiv:2502.15894); ``riflex_utils.py`` of thu-ml/RIFLEx.

    Example:
        >>> RIFLEx(Geometric(16, base=256.0), k=4, length=66, share=1).wavelengths()[2:5]
        (25.132741228718345, 66.0, 100.53096491487338)
    """

    k: int
    length: int
    share: Number = 0.9

    def __post_init__(self):
        super().__post_init__()
        check_whole(k=self.k, length=self.length)
        check_positive_number(share=self.share)

    def radians(self) -> tuple[Decimal, ...]:
        every = list(self.of.radians())
        every[self.k - 1] = exact(self.share) * TWO_PI / exact(self.length)
        return tuple(every)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them."""
        every = self.of.float32(form).clone()
        every[self.k - 1] = float(self.share) * 2 * pi / self.length
        return every


def intrinsic_frequency(schedule: Schedule, frames: int) -> int:
    """k: the frequency whose period, in whole frames, is nearest to that of the repetition.

    Args:
        schedule: The schedule of time.
        frames: The latent frame at which videos of the model are first seen to repeat.

    Reference:
        Zhao et al. 2025, "RIFLEx", equation 7 (arXiv:2502.15894).

    Example:
        >>> intrinsic_frequency(Geometric(16, base=256.0), 48)
        4
    """
    check_whole(frames=frames)
    periods = map(abs, schedule.wavelengths())
    away = [abs(round(period) - frames) if isfinite(period) else inf for period in periods]
    return away.index(min(away)) + 1
