"""Position interpolation: every frequency divided by one factor."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric, common_keys, geometric_of
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.schedule import Number, Schedule, check_positive, check_schedule, exact


@dataclass(frozen=True)
class Linear(Schedule):
    """ω_i / s: positions are squeezed by the factor s, and every wavelength grows by it.

    A factor below 1 spreads positions out, as for tokens that stand at fractions of one.

    Args:
        of: The schedule to rescale; its attention factor is kept.
        factor: s; 1 changes nothing, bit for bit.

    Raises:
        ValueError: ``factor`` is not positive and finite.

    Reference:
        Chen et al. 2023, "Extending Context Window of Large Language Models via Positional
        Interpolation", equation 4 (arXiv:2306.15595).

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Linear(Geometric(4, base=100.0), factor=2.0).wavelengths()
        (12.566370614359172, 125.66370614359172)
    """

    of: Schedule
    factor: Number

    def __post_init__(self):
        check_schedule(self, self.of)
        check_positive(self, factor=self.factor)
        self._settle(
            attention_factor=self.of.attention_factor, softmax_factor=self.of.softmax_factor
        )

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w / exact(self.factor) for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.of.float32(form) / float(self.factor)


def _read(rope: Rope, _length: int | None) -> Schedule:
    return Linear(geometric_of(rope), rope.needed("factor"))


def _write(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    if not isinstance(schedule, Linear) or not isinstance(schedule.of, Geometric):
        return None
    return common_keys(schedule.of, head_dim) | {"factor": float(schedule.factor)}


ROPE_TYPE = RopeType("linear", _read, _write, keys=("factor",))
