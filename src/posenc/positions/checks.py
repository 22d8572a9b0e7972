"""What a position is: an int64, or something that becomes one without loss."""

from collections.abc import Sequence
from typing import Any, Protocol, overload, runtime_checkable

import torch
from jaxtyping import Float64, Int64
from torch import Tensor
from typing_extensions import TypeAliasType

from posenc._rounding import odd_doubles, rounded
from posenc.guards import floating, has_float64, where_float64
from posenc.positions.coordinates import Coordinates

Device = torch.device | str | None


@runtime_checkable
class IntegerArray(Protocol):
    """An array of numpy, by what is needed of it."""

    def astype(self, dtype: str, /) -> Any:
        """The same numbers in another type."""
        ...


Integers = TypeAliasType(
    "Integers",
    Sequence[int] | Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]] | IntegerArray,
)
"""What stands for an int64 tensor: a list, a range, an integer array of numpy."""

Positions = TypeAliasType("Positions", Integers | Coordinates)
"""What stands for positions where real numbers do too."""


@overload
def checked(
    positions: Tensor | Positions, name: str = ..., *, device: Device = ..., reals: bool
) -> Tensor | Coordinates: ...


@overload
def checked(positions: Tensor | Positions, name: str = ..., *, device: Device = ...) -> Tensor: ...


def checked(
    positions: Tensor | Positions,
    name: str = "positions",
    *,
    device: torch.device | str | None = None,
    reals: bool = False,
) -> Int64[Tensor, "*shape"] | Coordinates:
    """``positions`` as an int64 tensor, made on ``device`` if they are no tensor yet.

    Narrower integers are widened. With ``reals``, ``Coordinates`` are returned as they are.

    Args:
        positions: Whole numbers.
        name: Their name in an error.
        device: Where a list, a range or an array becomes a tensor.
        reals: Whether ``Coordinates`` are taken too.

    Example:
        >>> checked(range(3))
        tensor([0, 1, 2])
    """
    if type(positions) is Tensor and positions.dtype is torch.int64:
        return positions
    if isinstance(positions, Coordinates):
        if reals:
            return positions
        raise TypeError(f"{name} are Coordinates, real numbers; they must be integers (int64).")
    if not isinstance(positions, Tensor):
        positions = torch.as_tensor(positions, device=device)
        if not positions.numel():  # an empty list is floating to torch
            return positions.to(torch.int64)
    dtype = positions.dtype
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        words = " Real numbers are posenc.positions.Coordinates." if reals else ""
        raise TypeError(f"{name} are {dtype}; they must be integers (int64).{words}")
    return positions.to(torch.int64)


def checked_points(
    positions: Int64[Tensor, "*batch seq axes"] | Positions, axes: int
) -> Int64[Tensor, "*batch seq axes"] | Coordinates:
    """``positions`` with so many coordinates each, whole or real."""
    points = checked(positions, reals=True)
    if points.ndim < 2 or points.shape[-1] != axes:
        raise ValueError(
            f"positions have shape {tuple(points.shape)}; they must be [*batch, seq, {axes}]."
        )
    return points


def floats(positions: Tensor | Coordinates, dtype: torch.dtype) -> Tensor:
    """Positions, or their distances, rounded once to floats, for formulas that compute with reals.

    Example:
        >>> floats(torch.tensor([2]), torch.float32), floats(Coordinates([0.5]), torch.float32)
        (tensor([2.]), tensor([0.5000]))
    """
    if isinstance(positions, Coordinates):
        return positions.floats(dtype)
    if floating(dtype) is torch.bfloat16 and has_float64(positions.device):
        wide = positions if positions.is_floating_point() else odd_doubles(positions)
        return rounded(wide.double(), dtype)  # by way of float32 it would be rounded twice
    return positions.to(dtype)


def in_float64(values: Tensor | Coordinates) -> Float64[Tensor, "..."]:
    """Positions or parameters in float64, on the CPU where their device has none.

    Angles grow with positions: in float32 they would be off by 6e-8 of themselves.

    Example:
        >>> in_float64(torch.tensor([2])), in_float64(Coordinates([0.5]))
        (tensor([2.], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
    """
    near = values.to(where_float64(values.device))  # first: that device casts to no float64
    return floats(near, torch.float64)


def is_one_a_row(shape: Sequence[int], of: Sequence[int]) -> bool:
    """Whether something of a shape is given for each row of another shape, or for all of them."""
    sizes = zip(reversed(shape), reversed(of), strict=False)
    return len(shape) <= len(of) and all(size in (1, other) for size, other in sizes)
