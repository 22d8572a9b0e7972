"""NTK-aware scaling: a larger base, so that only the slow frequencies slow down."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric, geometric_of
from posenc.frequencies.huggingface import Rope, RopeType
from posenc.frequencies.schedule import (
    Number,
    Schedule,
    check_extension,
    check_length,
    exact,
)


@dataclass(frozen=True)
class NTK(Schedule):
    """ω_i with base b·s^(d/(d−2)), which is b^(−2i/d) · s^(−2i/(d−2)).

    The fastest frequency stays, and the slowest is divided by s exactly.

    Args:
        of: The schedule whose base b grows, of width d.
        factor: s; 1 changes nothing, bit for bit.

    Raises:
        TypeError: ``of`` has no base.
        ValueError: ``factor`` is below 1 or not finite, or the width is 2 or less.

    Reference:
        bloc97 2023, "NTK-Aware Scaled RoPE"; Peng et al. 2023, "YaRN", equation 16
        (arXiv:2309.00071), where κ stands for s.

    Example:
        >>> plain, scaled = Geometric(4, base=100.0), NTK(Geometric(4, base=100.0), factor=2.0)
        >>> [after / before for before, after in zip(plain.wavelengths(), scaled.wavelengths())]
        [1.0, 2.0]
    """

    of: Geometric
    factor: Number

    def __post_init__(self):
        check_geometric(self, self.of)
        check_extension(self, self.factor)
        if self.of.dim <= 2:
            raise ValueError(f"NTK divides by dim − 2; of has dim {self.of.dim}. Give 4 or more.")

    def radians(self) -> tuple[Decimal, ...]:
        log_factor, width = exact(self.factor).ln(), self.of.dim - 2
        return tuple(
            w * (-log_factor * 2 * i / width).exp() if log_factor else w
            for i, w in enumerate(self.of.radians())
        )

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        grown = self.of.base * float(self.factor) ** (self.of.dim / (self.of.dim - 2))
        return Geometric(self.of.dim, grown).float32(form)


@dataclass(frozen=True)
class DynamicNTK:
    """NTK scaling by a factor that grows with the length; ``at(length)`` is the schedule.

    s(L) = s·L/L0 − (s − 1) for lengths L above L0, and 1 below

    It is a pure function of the length that the caller states, never of what was seen before: with
    another length all keys turn otherwise, those in a cache too (``rerotate``).

    Args:
        of: The schedule whose base grows.
        factor: s.
        trained_length: L0.

    Raises:
        TypeError: ``of`` has no base.
        ValueError: ``factor`` is below 1 or not finite, or ``trained_length`` is not positive.

    Reference:
        emozilla 2023, "Dynamically Scaled RoPE"; ``dynamic`` in transformers.

    Example:
        >>> dynamic = DynamicNTK(Geometric(8), factor=2.0, trained_length=4096)
        >>> dynamic.at(8192)
        NTK(of=Geometric(dim=8, base=10000.0), factor=Fraction(3, 1))
        >>> dynamic.at(1000).turns() == Geometric(8).turns()
        True
    """

    of: Geometric
    factor: Number
    trained_length: int

    def __post_init__(self):
        check_geometric(self, self.of)
        check_extension(self, self.factor)
        check_length(self, self.trained_length)

    def at(self, length: int) -> NTK:
        """The schedule for sequences of ``length`` tokens.

        Raises:
            ValueError: ``length`` is no positive whole number.
        """
        check_length(self, length, name="length")
        factor, length = Fraction(self.factor), max(length, self.trained_length)
        return NTK(self.of, factor * length / self.trained_length - (factor - 1))


def check_geometric(owner: object, of: object) -> None:
    """Refuse a schedule that has no width and base to compute with.

    Raises:
        TypeError: ``of`` is not ``Geometric``.
    """
    if not isinstance(of, Geometric):
        raise TypeError(
            f"{type(owner).__name__} rescales by width and base; it takes Geometric(dim, base), "
            f"and was given {of!r}."
        )


def _read_dynamic(rope: Rope, length: int | None) -> Schedule:
    trained = rope.length("longest")
    schedule = DynamicNTK(geometric_of(rope), rope.needed("factor"), trained)
    return schedule.at(length or trained)


DYNAMIC_ROPE_TYPE = RopeType("dynamic", _read_dynamic, keys=("factor",))


def _is_hunyuans(named: str, values: Any, family: str) -> bool:
    """HunYuan's fixed stretch goes by the name of the dynamic one; other models read no alpha."""
    return named == "dynamic" and bool(values.get("alpha")) and family.startswith("hunyuan")


ROPE_TYPE = RopeType(
    "ntk_alpha",
    lambda rope, _length: NTK(geometric_of(rope), rope.needed("alpha")),
    keys=("factor", "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
    factor_key="alpha",
    claims=_is_hunyuans,
    in_transformers=False,
)
