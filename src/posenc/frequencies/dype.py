"""DyPE: the positions of an image generator, extended less and less as denoising goes on."""

from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.ntk import NTK, check_geometric
from posenc.frequencies.ntk_by_parts import NTKByParts, Turns
from posenc.frequencies.schedule import (
    PRECISION,
    Number,
    Schedule,
    check_length,
    check_positive,
    exact,
    is_no_number,
    plain,
    plain_first,
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

    Raises:
        TypeError: ``of`` has no base.
        ValueError: A number is not positive.

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

    @plain_first
    def __post_init__(self):
        check_geometric(self, self.of)
        check_length(self, self.trained_length)
        check_positive(self, scale=self.scale, exponent=self.exponent)

    def at(self, length: int, time: Number) -> NTK:
        """The schedule for so many patches, at the time t from 1 to 0.

        Raises:
            ValueError: ``length`` is no whole number from 1 on, or ``time`` not within 0 and 1.
        """
        factor = _extension(self, length, self.trained_length)
        return NTK(self.of, _power(factor, _kappa(self, time)))


@dataclass(frozen=True)
class DyYaRN:
    """NTK by parts, whose borders β and γ are multiplied with κ(t) = λ_s · t^λ_t.

    So fewer and fewer pairs are changed; at the end of the denoising, t = 0, none is. The attention
    factor stays 0.1·ln s + 1. ``at(length, time)`` is the schedule.

    Where borders lie past the last pair, as for FLUX from t = 0.02 on down, those of the authors'
    code pass one another, and pairs that should be as in training are interpolated: all of them
    below t = 0.006. Here they are as in training.

    Args:
        of: The schedule of one axis.
        trained_length: The patches along that axis in training: 64 for FLUX.
        scale: λ_s; 1 in the authors' code.
        exponent: λ_t; 2 there.
        beta: Turns between which NTK's frequencies go over to interpolated ones, at t = 1.
        gamma: Turns between which those of the training go over to NTK's.

    Raises:
        TypeError: ``of`` has no base.
        ValueError: A number is not positive, or borders are in the wrong order.

    Reference:
        Issachar et al. 2025, "DyPE" (arXiv:2510.20766); ``get_1d_rotary_pos_embed`` in
        guyyariv/DyPE, which multiplies the borders (other code takes them to the power κ).

    Example:
        >>> dype = DyYaRN(Geometric(56), trained_length=64)
        >>> noise = dype.at(256, time=1.0)
        >>> noise == NTKByParts(Geometric(56), 4, 64)
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

    @plain_first
    def __post_init__(self):
        check_positive(self, scale=self.scale, exponent=self.exponent)
        NTKByParts(self.of, 1, self.trained_length, self.beta, self.gamma)  # refuses the rest

    def at(self, length: int, time: Number) -> Schedule:
        """The schedule for so many patches, at the time t from 1 to 0.

        Raises:
            ValueError: ``length`` is no whole number from 1 on, or ``time`` not within 0 and 1.
        """
        factor, kappa = _extension(self, length, self.trained_length), _kappa(self, time)
        if factor == 1:
            return self.of
        # At the end of all, borders of no turn at all: as far as a pair can be.
        least = max(kappa, Fraction(1, 10**12))
        beta, gamma = (
            (rational(fast) * least, rational(slow) * least)
            for fast, slow in (self.beta, self.gamma)
        )
        return NTKByParts(self.of, factor, self.trained_length, beta, gamma)


def _extension(owner: object, length: int, trained_length: int) -> Fraction:
    length = plain(length)
    check_length(owner, length, name="length")
    return max(Fraction(length, trained_length), Fraction(1))


def _kappa(owner: DyNTK | DyYaRN, time: Number) -> Fraction:
    time = plain(time)
    if is_no_number(time) or not 0 <= time <= 1:
        raise ValueError(
            f"{type(owner).__name__}: time is {time!r}; it runs from 1 (noise) to 0 (the image)."
        )
    return rational(owner.scale) * _power(rational(time), rational(owner.exponent))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """base^exponent, to 110 digits where it is no fraction."""
    if exponent.denominator == 1:
        return base**exponent.numerator
    with localcontext(PRECISION):
        return Fraction(exact(base) ** exact(exponent)) if base else Fraction(0)
