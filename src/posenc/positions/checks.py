"""What a position is: an int64, or something that is one without any loss."""

from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal, Protocol, overload, runtime_checkable

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc._rounding import odd_doubles, rounded
from posenc.guards import (
    check_dense,
    demand,
    floating,
    graph_looks,
    has_float64,
    may_look,
    where_float64,
)
from posenc.positions.coordinates import Coordinates
from posenc.positions.scales import check_finite


@runtime_checkable
class IntegerArray(Protocol):
    """An array of numpy, by what is needed of it."""

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""
        ...

    def astype(self, dtype: str, /) -> Any:
        """The same numbers in another type."""
        ...


Integers = (
    Sequence[int] | Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]] | IntegerArray
)
"""What stands for an int64 tensor: a list, a range, an integer array of numpy."""

Positions = Integers | Coordinates
"""What stands for positions where real numbers do too."""


@overload
def checked(
    positions: Tensor | Positions,
    name: str = "positions",
    *,
    device: torch.device | str | None = None,
    reals: Literal[False] = False,
) -> Tensor: ...


@overload
def checked(
    positions: Tensor | Positions,
    name: str = "positions",
    *,
    device: torch.device | str | None = None,
    reals: bool,
) -> Tensor | Coordinates: ...


def checked(
    positions: Tensor | Positions,
    name: str = "positions",
    *,
    device: torch.device | str | None = None,
    reals: bool = False,
) -> Int64[Tensor, "*shape"] | Coordinates:
    """``positions`` as an int64 tensor, or an error for what cannot be a position.

    Narrower integers are widened, which loses nothing; lists, ranges and integer arrays become
    tensors.

    Args:
        positions: Whole numbers.
        name: What they are called, for the words of an error.
        device: Where to make a tensor of what is none yet.
        reals: Whether ``Coordinates`` are taken too, as they are.

    Raises:
        TypeError: ``positions`` are not integers, or unsigned where they cannot be looked at, or
            coordinates where only whole positions mean anything.
        ValueError: A number is no int64.

    Example:
        >>> checked(range(3))
        tensor([0, 1, 2])
        >>> checked(torch.tensor([0.0, 1.0]))
        Traceback (most recent call last):
        ...
        TypeError: positions are torch.float32; they must be integers (int64). Floating positions \
collide once they are large: build them with posenc.positions, or call .long() on whole numbers. \
Real numbers, as seconds, have no place here; Rotary, Sinusoidal and ALiBi take \
posenc.positions.Coordinates.
    """
    if (  # the usual case, at once
        type(positions) is Tensor
        and positions.dtype is torch.int64
        and positions.layout is torch.strided
        and not positions.is_nested
    ):
        return positions
    if isinstance(positions, Coordinates):
        if reals:
            return positions
        raise TypeError(
            f"{name} are Coordinates, real numbers; here rows are looked up or tokens counted, so "
            f"they must be integers (int64). Pass whole positions, or take an encoding whose "
            f"formula takes reals, as Rotary, Sinusoidal or ALiBi."
        )
    if not isinstance(positions, Tensor):
        positions = _tensor(positions, name, device)
    check_dense(**{name: positions})
    dtype = positions.dtype
    if dtype == torch.int64:
        return positions
    if dtype == torch.bool:
        raise TypeError(
            f"{name} are torch.bool; they must be integers (int64). "
            f"A mask becomes positions through posenc.positions.left_padded(mask)."
        )
    if dtype.is_floating_point or dtype.is_complex:
        raise TypeError(
            f"{name} are {dtype}; they must be integers (int64). Floating positions "
            f"collide once they are large: build them with posenc.positions, or call .long() on "
            f"whole numbers. {_for_reals(name, reals)}"
        )
    return _signed(positions, name) if dtype == torch.uint64 else positions.to(torch.int64)


def checked_points(
    positions: Int64[Tensor, "*batch seq axes"] | Positions, axes: int
) -> Int64[Tensor, "*batch seq axes"] | Coordinates:
    """``positions`` with so many coordinates each, whole or real.

    Raises:
        TypeError: ``positions`` are neither integers nor coordinates.
        ValueError: They do not have one coordinate an axis.

    Example:
        >>> checked_points([[0, 1]], axes=2)
        tensor([[0, 1]])
        >>> checked_points([0, 1], axes=2)
        Traceback (most recent call last):
        ...
        ValueError: positions have shape (2,); they must be [*batch, seq, 2], one coordinate an \
axis, as of posenc.positions.grid.
    """
    points = checked(positions, reals=True)
    if points.ndim < 2 or points.shape[-1] != axes:
        raise ValueError(
            f"positions have shape {tuple(points.shape)}; they must be [*batch, seq, {axes}], one "
            f"coordinate an axis, as of posenc.positions.grid."
        )
    return points


def floats(positions: Tensor | Coordinates, dtype: torch.dtype) -> Tensor:
    """Positions, or their distances, rounded once to floats, for formulas that compute with reals.

    Raises:
        ValueError: ``dtype`` is float16, and one is beyond its largest number.

    Example:
        >>> floats(torch.tensor([2]), torch.float32), floats(Coordinates([0.5]), torch.float32)
        (tensor([2.]), tensor([0.5000]))
    """
    if isinstance(positions, Coordinates):
        return positions.floats(dtype)
    if floating(dtype) is torch.bfloat16 and has_float64(positions.device):
        wide = positions.double() if positions.is_floating_point() else odd_doubles(positions)
        return rounded(wide, dtype)  # by way of float32 it would be rounded twice
    return within_float16(positions.to(dtype))


def within_float16(numbers: Tensor) -> Tensor:
    """Positions as floats, refused where float16 has made them infinite; unless none may look.

    Raises:
        ValueError: It has.

    Example:
        >>> within_float16(torch.tensor([70_000]).half())
        Traceback (most recent call last):
        ...
        ValueError: A position or distance is beyond 65504, the largest number of float16. Ask for \
float32, and cast what comes out.
    """
    if numbers.dtype == torch.float16:
        check_finite(numbers)
    return numbers


def in_float64(values: Tensor | Coordinates) -> Float64[Tensor, "..."]:
    """Positions or parameters in float64, on the CPU where their device has none.

    Angles grow with positions: in float32 they would be off by 6e-8 of themselves.

    Example:
        >>> in_float64(torch.tensor([2])), in_float64(Coordinates([0.5]))
        (tensor([2.], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
    """
    if isinstance(values, Coordinates) and values.values.is_cpu:
        return values.floats()
    near = values.to(where_float64(values.device))  # first: that device casts to no float64
    return floats(near, torch.float64)


@overload
def checked_within(
    positions: Tensor | Positions,
    low: int,
    high: int,
    name: str = ...,
    *,
    reals: Literal[False] = ...,
) -> Tensor: ...


@overload
def checked_within(
    positions: Tensor | Positions, low: int, high: int, name: str = ..., *, reals: bool
) -> Tensor | Coordinates: ...


def checked_within(
    positions: Tensor | Positions,
    low: int,
    high: int,
    name: str = "positions",
    *,
    reals: bool = False,
) -> Int64[Tensor, "*shape"] | Coordinates:
    """``checked`` positions from ``low`` to ``high``, for who computes with them further.

    On accelerators, where a look would wait, and where nobody can look, they are not compared. Nor
    are coordinates, with ``reals``, whose arithmetic looks by itself.

    Raises:
        TypeError: ``positions`` are not integers.
        ValueError: One lies outside.

    Example:
        >>> checked_within([2**62], -(2**61), 2**61)
        Traceback (most recent call last):
        ...
        ValueError: positions run from 4611686018427387904 to 4611686018427387904; what is made of \
them fits into int64 from -2305843009213693952 to 2305843009213693952. Count from another start.
    """
    if isinstance(positions, Coordinates) and reals:
        return positions
    positions = checked(positions, name)
    if graph_looks(positions):
        inside = ((positions >= low) & (positions <= high)).all()
        demand(inside, f"{name} reach so far that int64 does not hold what is made of them.")
    if positions.is_cpu and may_look(positions) and positions.numel():
        first, last = (int(end) for end in positions.aminmax())
        if first < low or last > high:
            raise ValueError(
                f"{name} run from {first} to {last}; what is made of them fits into int64 from "
                f"{low} to {high}. Count from another start."
            )
    return positions


@overload
def shifted(positions: Tensor | Positions, by: int, *, reals: Literal[False] = ...) -> Tensor: ...


@overload
def shifted(positions: Tensor | Positions, by: int, *, reals: bool) -> Tensor | Coordinates: ...


def shifted(
    positions: Tensor | Positions, by: int, *, reals: bool = False
) -> Int64[Tensor, "*shape"] | Coordinates:
    """``positions + by``, refused where a sum would leave int64 and can be looked at.

    Coordinates, with ``reals``, are shifted by whole units.

    Raises:
        TypeError: ``positions`` are not integers.
        ValueError: A sum leaves int64.

    Example:
        >>> shifted([0, 1], 2)
        tensor([2, 3])
    """
    if isinstance(positions, Coordinates) and reals:
        return positions + by if by else positions
    if not by:
        return checked(positions)
    least, most = -(2**63) - min(by, 0), 2**63 - 1 - max(by, 0)
    return checked_within(positions, least, most) + by


def is_one_a_row(shape: Sequence[int], of: Sequence[int]) -> bool:
    """Whether something of a shape is given for each row of another shape, or for all of them.

    Example:
        >>> is_one_a_row((1, 3), (2, 3)), is_one_a_row((3,), (2, 3)), is_one_a_row((3, 3), (2, 3))
        (True, True, False)
    """
    sizes = zip(reversed(shape), reversed(of), strict=False)
    return len(shape) <= len(of) and all(size in (1, other) for size, other in sizes)


def _for_reals(name: str, reals: bool) -> str:
    if reals:
        taken = f"posenc.positions.Coordinates({name})"
        return f"Where real numbers are meant, as seconds, pass {taken}."
    return (
        "Real numbers, as seconds, have no place here; Rotary, Sinusoidal and ALiBi take "
        "posenc.positions.Coordinates."
    )


def _tensor(values: Any, name: str, device: torch.device | str | None) -> Tensor:
    kind = getattr(getattr(values, "dtype", None), "kind", None)  # of a numpy array
    if kind in ("i", "u"):
        return _array(values, name).to(device)
    listed = _listed(values, name)
    if len(_switched(listed)) > 1:
        raise TypeError(
            f"{name} hold True or False among numbers, which torch would count as 1 and 0; they "
            f"must be integers (int64). A mask becomes positions through "
            f"posenc.positions.left_padded(mask)."
        )
    try:
        made = torch.tensor(listed, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        if "Overflow" in str(error):
            raise ValueError(f"{name} hold a number that is no int64 ({error}).") from None
        raise TypeError(_no_list(values, name)) from None
    return made if made.numel() else made.to(torch.int64)


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | bytearray | Set | Mapping):  # no numbers, or no order
        raise TypeError(_no_list(values, name))
    try:
        return list(values.tolist() if hasattr(values, "tolist") else values)
    except TypeError:
        raise TypeError(_no_list(values, name)) from None


def _switched(values: Sequence[Any]) -> set[bool]:
    """Whether entries are switches, for all of them."""
    if set(map(type, values)) == {int}:  # nearly always, and soon seen
        return {False}
    found = set[bool]()
    for each in values:
        found |= _switched(each) if isinstance(each, list | tuple) else {_is_switch(each)}
    return found


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def _no_list(values: Any, name: str) -> str:
    return (
        f"{name} are a {type(values).__name__}; they must be an int64 tensor, or a list, a range "
        f"or an array of whole numbers. Build them with posenc.positions."
    )


def _array(values: Any, name: str) -> Tensor:
    """An integer array of numpy, in whatever byte order and strides."""
    if values.dtype.kind == "u" and values.dtype.itemsize == 8 and (values >= 2**63).any():
        raise ValueError(_beyond(name))
    return torch.as_tensor(values.astype("int64"))


def _signed(positions: Tensor, name: str) -> Tensor:
    """uint64 as int64: the numbers from 2^63 on would come out negative."""
    if positions.is_meta:
        return positions.to(torch.int64)
    if not may_look(positions):
        raise TypeError(
            f"{name} are torch.uint64, which may hold numbers that are no int64; inside a graph or "
            f"a transform nobody can look. Call .long() on them before."
        )
    signed = positions.view(torch.int64)
    if bool((signed < 0).any()):
        raise ValueError(_beyond(name))
    return signed


def _beyond(name: str) -> str:
    return (
        f"{name} are unsigned and reach 2^63 or more, which int64 does not hold. Count from a "
        f"later start: only differences and int64 positions mean anything."
    )
