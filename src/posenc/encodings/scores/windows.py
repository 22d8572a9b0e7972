"""What the encodings of image windows share: displacements on a grid, and rows chosen by them."""

import operator

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.guards import demand, graph_looks, may_look
from posenc.positions import NOWHERE, Integers, checked, checked_distances, placeless
from posenc.positions.placeless import MANY, with_places

SPECIAL = 3
"""Pairs with tokens that stand nowhere: from one to a place, from a place to one, among them."""


def checked_window(window: int | tuple[int, int], name: str = "window") -> tuple[int, int]:
    """Height and width of a window; one number stands for both.

    Raises:
        ValueError: It is not one or two whole numbers from 1 on.

    Example:
        >>> checked_window(7), checked_window((4, 8))
        ((7, 7), (4, 8))
    """
    sizes = window if isinstance(window, tuple) else (window, window)
    wrong = len(sizes) != 2 or any(_is_switch(size) for size in sizes)
    try:
        height, width = sizes if wrong else tuple(operator.index(size) for size in sizes)
    except (TypeError, ValueError):
        wrong, height, width = True, 0, 0
    if wrong or min(height, width) < 1 or max(height, width) > 2**31:
        raise ValueError(
            f"{name} is {window!r}; it must be a whole number from 1 on, or (height, width)."
        )
    return height, width


def _is_switch(size: object) -> bool:
    return isinstance(size, bool) or getattr(size, "dtype", None) == torch.bool


def displacements(
    q_positions: Int64[Tensor, "*batch q_len 2"] | Integers,
    k_positions: Int64[Tensor, "*batch k_len 2"] | Integers,
    window: tuple[int, int],
    *,
    name: str,
) -> Int64[Tensor, "*batch 2 q_len k_len"]:
    """q − k along both axes of a grid, all less than the window.

    Where a token stands nowhere, as a class token, it is a mark: NOWHERE if that is the query,
    NOWHERE + 1 if it is the key, NOWHERE + 2 if neither has a place.

    Args:
        q_positions: (y, x) of the queries, as ``posenc.positions.grid`` makes them.
        k_positions: (y, x) of the keys.
        window: Height and width.
        name: Who asks, for the words of an error.

    Raises:
        TypeError: Positions are not integers.
        ValueError: They do not have two coordinates, or lie further apart than the window allows.

    Example:
        >>> points = torch.tensor([[0, 0], [1, 2]])
        >>> displacements(points, points, (2, 3), name="SwinBias")[:, 1, 0]
        tensor([1, 2])
    """
    queries = _points(checked(q_positions, "q_positions"), "q_positions")
    keys = _points(checked(k_positions, "k_positions"), "k_positions")
    lost = placeless(queries).unsqueeze(-1), placeless(keys).unsqueeze(-2)
    nowhere = lost[0] | lost[1]
    marked = not may_look(nowhere) or bool(nowhere.any())
    if marked:
        queries = with_places(queries, lost[0].squeeze(-1))
        keys = with_places(keys, lost[1].squeeze(-2))
    along = [checked_distances(queries[..., axis], keys[..., axis]) for axis in range(2)]
    apart = torch.stack(along, dim=-3)
    if marked:
        apart = apart.masked_fill(nowhere.unsqueeze(-3), 0)
    if graph_looks(apart):
        sizes = torch.tensor(window, device=apart.device).view(2, 1, 1)
        demand((apart.abs() < sizes).all(), f"Tokens lie further apart than {name}'s {window}.")
    if may_look(apart) and apart.numel():
        far = tuple(int(apart.select(-3, axis).abs().amax()) for axis in range(2))
        if far[0] >= window[0] or far[1] >= window[1]:
            raise ValueError(
                f"Tokens lie {far} apart along (y, x); {name} was built for a window of {window}. "
                f"Give positions within one window, or a larger one with resized(...)."
            )
    if not marked:
        return apart
    marks = NOWHERE + lost[1].to(torch.int64) + (lost[0] & lost[1]).to(torch.int64)
    return torch.where(nowhere.unsqueeze(-3), marks.unsqueeze(-3), apart)


def without_place(
    apart: Int64[Tensor, "*batch 2 q_len k_len"],
) -> Bool[Tensor, "*batch q_len k_len"] | None:
    """For which pairs there is no displacement; ``None`` where all have one, as can be seen.

    Example:
        >>> without_place(torch.tensor([[[-1]], [[1]]])) is None
        True
    """
    absent = apart.select(-3, 0) < NOWHERE + MANY
    return absent if not may_look(absent) or bool(absent.any()) else None


def _points(positions: Tensor, name: str) -> Tensor:
    if positions.ndim < 2 or positions.shape[-1] != 2:
        raise ValueError(
            f"{name} have shape {tuple(positions.shape)}; they must be [*batch, seq, 2] with "
            f"(y, x), as of posenc.positions.grid(height, width)."
        )
    return positions


def rows_by_displacement(
    rows: Float[Tensor, "offsets heads"],
    apart: Int64[Tensor, "*batch 2 q_len k_len"],
    window: tuple[int, int],
) -> Float[Tensor, "*batch heads q_len k_len"]:
    """For each pair the row of its displacement, ``(dy + h − 1)(2w − 1) + dx + w − 1``.

    Three more rows are for pairs with tokens that stand nowhere; they are zeros if not there.

    Example:
        >>> apart = torch.tensor([[[-1]], [[1]]])
        >>> rows_by_displacement(torch.arange(9.0).view(9, 1), apart, (2, 2))
        tensor([[[2.]]])
    """
    height, width = window
    dy, dx = apart.unbind(-3)
    index = (dy + height - 1) * (2 * width - 1) + dx + width - 1
    absent = without_place(apart)
    if absent is not None:
        within = (2 * height - 1) * (2 * width - 1)
        index = torch.where(absent, dy - NOWHERE + within, index)
        if len(rows) == within:
            rows = torch.cat((rows, rows.new_zeros(SPECIAL, rows.shape[1])))
    return F.embedding(index, rows).movedim(-1, -3)
