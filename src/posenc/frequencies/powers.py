"""Powers of a base: the frequencies of every classic method."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, Any

from posenc.arguments import check_number, check_numbers, check_positive_number, check_whole
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.schedule import PRECISION, Number, Schedule, as_float32, exact, rational

if TYPE_CHECKING:
    from jaxtyping import Float32
    from torch import Tensor


@dataclass(frozen=True)
class Powers(Schedule):
    """ω_i = base^(−numerators[i] / denominator).

    The exponent is kept as a fraction, since the paper's 2i/d, fairseq's i/(d/2 − 1) and their
    kin differ in nothing else.

    Example:
        >>> Powers(base=100.0, numerators=(0, 2), denominator=4).float32("float32")
        tensor([1.0000, 0.1000])
    """

    base: Number
    numerators: tuple[Number, ...]
    denominator: Number

    def __post_init__(self):
        check_positive_number(base=self.base)
        object.__setattr__(self, "numerators", tuple(self.numerators))
        check_numbers(numerators=self.numerators)
        check_number(denominator=self.denominator)
        if not self.denominator:
            raise ValueError("The exponents divide by 0: the width is too small for this schedule.")

    @property
    def exponents(self) -> tuple[Fraction, ...]:
        """The e_i of ω_i = base^(−e_i)."""
        return tuple(rational(n) / rational(self.denominator) for n in self.numerators)

    def radians(self) -> tuple[Decimal, ...]:
        return _powers(rational(self.base), self.exponents)

    def float32(self, form: str) -> "Float32[Tensor, 'frequencies']":
        """The two roundings in public use: the power, or the exponential of a logarithm."""
        numerators, denominator = as_float32(self.numerators), float(self.denominator)
        if form == "float32-log":
            return (numerators * (-log(self.base) / denominator)).exp()
        return 1.0 / (float(self.base) ** (numerators / denominator))


@lru_cache(maxsize=64)
def _powers(base: Fraction, exponents: tuple[Fraction, ...]) -> tuple[Decimal, ...]:
    """base^(−e) for each exponent; the layers of a model ask for the same ones."""
    with localcontext(PRECISION):
        log_base = exact(base).ln()
        return tuple(
            (-log_base * e.numerator / e.denominator).exp() if e else Decimal(1) for e in exponents
        )


@dataclass(frozen=True)
class Geometric(Schedule):
    """ω_i = base^(−2i/dim) for i = 0 … dim/2 − 1: wavelengths from 2π toward 2π·base.

    An odd ``dim`` has (dim + 1)/2 frequencies, the last of them for an unpaired channel.

    Args:
        dim: Width that is encoded, d in the paper.
        base: n = 10000 in the paper.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.5 (arXiv:1706.03762);
        Su et al. 2021, "RoFormer", equation 15 (arXiv:2104.09864).

    Example:
        >>> Geometric(4, base=100.0).wavelengths()
        (6.283185307179586, 62.83185307179586)
    """

    dim: int
    base: Number = 10_000.0

    def __post_init__(self):
        check_whole(dim=self.dim)
        check_positive_number(base=self.base)

    @property
    def powers(self) -> Powers:
        """The same frequencies with their exponents 2i/dim spelled out."""
        return Powers(self.base, tuple(range(0, self.dim, 2)), self.dim)

    def radians(self) -> tuple[Decimal, ...]:
        return self.powers.radians()

    def float32(self, form: str) -> "Float32[Tensor, 'frequencies']":
        return self.powers.float32(form)


def geometric_of(rope: Rope) -> Geometric:
    """The frequencies of a rope dictionary before any rescaling."""
    return Geometric(rope.width, rope.base)


def _said(plain: Geometric, head_dim: int) -> dict[str, Any]:
    found: dict[str, Any] = {"rope_theta": float(plain.base)}
    if plain.dim != head_dim:
        found["partial_rotary_factor"] = plain.dim / head_dim
    return found


def writer(kind: type[Any], fields: Mapping[str, str]) -> Callable[[Schedule, int], Any]:
    """Writes schedules of one kind over plain frequencies: each key with the field it tells."""

    def write(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
        plain = getattr(schedule, "of", None)
        if not isinstance(schedule, kind) or not isinstance(plain, Geometric):
            return None
        said = _said(plain, head_dim)
        for key, field in fields.items():
            value = getattr(schedule, field)
            if value is not None:
                as_it_is = isinstance(value, bool) or field == "trained_length"
                said[key] = value if as_it_is else float(value)
        return said

    return write


def _write(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    return _said(schedule, head_dim) if isinstance(schedule, Geometric) else None


ROPE_TYPE = RopeType(
    "default", lambda rope, _length: geometric_of(rope), _write, aliases=("mrope",)
)
