"""The schedule of Vaswani et al. and of rotary embeddings."""

from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.powers import Powers
from posenc.frequencies.schedule import Schedule

MOST = 1 << 24
"""No head is wider."""


@dataclass(frozen=True)
class Geometric(Schedule):
    """ω_i = base^(−2i/dim) for i = 0 … dim/2 − 1: wavelengths from 2π toward 2π·base.

    An odd ``dim`` has (dim + 1)/2 frequencies, the last of them for an unpaired channel.

    Args:
        dim: Width that is encoded, d in the paper.
        base: n = 10000 in the paper.

    Raises:
        ValueError: ``dim`` is not a positive integer, or ``base`` is not positive and finite.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.5 (arXiv:1706.03762);
        Su et al. 2021, "RoFormer", equation 15 (arXiv:2104.09864).

    Example:
        >>> Geometric(4, base=100.0).wavelengths()
        (6.283185307179586, 62.83185307179586)
    """

    dim: int
    base: int | float = 10_000.0

    def __post_init__(self):
        whole = isinstance(self.dim, Integral) and not isinstance(self.dim, bool)
        if not whole or not 0 < self.dim <= MOST:
            raise ValueError(f"dim is {self.dim!r}; it must be a positive whole number, as 128.")
        object.__setattr__(self, "dim", int(self.dim))  # numpy's, too
        self.powers  # noqa: B018 (a bad base is reported where it is given)

    @property
    def powers(self) -> Powers:
        """The same frequencies with their exponents 2i/dim spelled out."""
        return Powers(self.base, tuple(range(0, self.dim, 2)), self.dim)

    def radians(self) -> tuple[Decimal, ...]:
        return self.powers.radians()

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.powers.float32(form)


def geometric_of(rope: Rope) -> Geometric:
    """The frequencies of a rope dictionary before any rescaling."""
    return Geometric(rope.width, rope.base)


def common_keys(schedule: Geometric, head_dim: int) -> dict[str, Any]:
    """What a rope dictionary says of these frequencies in a head of some width.

    Example:
        >>> common_keys(Geometric(16), head_dim=64)
        {'rope_theta': 10000.0, 'partial_rotary_factor': 0.25}
    """
    found: dict[str, Any] = {"rope_theta": float(schedule.base)}
    if schedule.dim != head_dim:
        found["partial_rotary_factor"] = schedule.dim / head_dim
    return found


def _write(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    return common_keys(schedule, head_dim) if isinstance(schedule, Geometric) else None


ROPE_TYPE = RopeType(
    "default", lambda rope, _length: geometric_of(rope), _write, aliases=("mrope",)
)
