"""p-RoPE: the fastest part of the frequencies, and 0 for the rest."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.linear import Linear
from posenc.frequencies.powers import Powers
from posenc.frequencies.schedule import Schedule, is_no_number


@dataclass(frozen=True)
class Proportional(Schedule):
    """ω_i = base^(−2i/dim) for the first ⌊fraction · dim / 2⌋ pairs, and 0 for the others.

    The exponent divides by the full width, unlike partial rotation, where it divides by the rotated
    width; the pairs that do not turn are spread with the others over the whole head.

    Args:
        dim: Width of a head.
        fraction: Share of the pairs that turn.
        base: Base of the powers.

    Raises:
        ValueError: ``dim`` or ``base`` is not positive, or ``fraction`` is not from 0 to 1.

    Reference:
        Barbero et al. 2024, "Round and Round We Go!", section 6 (arXiv:2410.06205).

    Example:
        >>> Proportional(8, fraction=0.5, base=100.0).wavelengths()
        (6.283185307179586, 19.869176531592203, inf, inf)
    """

    dim: int
    fraction: float = 1.0
    base: int | float = 10_000.0

    def __post_init__(self):
        Geometric(self.dim, self.base)
        if is_no_number(self.fraction) or not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction is {self.fraction!r}; it must be a share from 0 to 1.")

    @property
    def rotating(self) -> int:
        """Number of pairs that turn."""
        return int(self.fraction * self.dim // 2)

    def radians(self) -> tuple[Decimal, ...]:
        every = Geometric(self.dim, self.base).radians()
        return every[: self.rotating] + (Decimal(0),) * (len(every) - self.rotating)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        rotating = Powers(self.base, tuple(range(0, 2 * self.rotating, 2)), self.dim).float32(form)
        return torch.cat((rotating, rotating.new_zeros((self.dim + 1) // 2 - self.rotating)))


def _read(rope: Rope, _length: int | None) -> Schedule:
    fraction = rope.values.get("partial_rotary_factor", 1.0)
    plain = Proportional(rope.head_dim, fraction, rope.base)
    factor = rope.values.get("factor", 1.0)
    return plain if factor == 1 else Linear(plain, factor)


def _write(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    plain, factor = schedule, None
    if isinstance(schedule, Linear):
        plain, factor = schedule.of, float(schedule.factor)
    if not isinstance(plain, Proportional) or plain.dim != head_dim:  # the share is of the head
        return None
    said = {"rope_theta": float(plain.base), "partial_rotary_factor": plain.fraction}
    return said if factor is None else said | {"factor": factor}


ROPE_TYPE = RopeType("proportional", _read, _write, keys=("factor",))
