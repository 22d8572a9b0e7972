"""The map of a shift, of whatever encoding, and how it is printed."""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from posenc.cli.encodings import key_heads
from posenc.cli.errors import UserError, check_memory
from posenc.cli.render.screen import console, number
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.bias import ScoreBias
from posenc.inspection.shift import ShiftMap, shift_map
from posenc.positions import consecutive

# A map whose error is no more than rounding.
ROUNDING = 1e-9
BLOCK = 64

Side = Literal["queries", "keys"]


def shift_of(encoding: Any, offset: int, length: int, side: Side = "keys") -> ShiftMap:
    """The map of a token encoding, or of one side of an encoding that acts inside attention."""
    if not isinstance(encoding, QueryKeyEncoding):
        check_memory(3 * length * encoding.dim + encoding.dim**2)
        return shift_map(encoding, offset, length=length)
    return _side_map(encoding, offset, length, side)


@torch.no_grad()
def _side_map(encoding: QueryKeyEncoding, offset: int, length: int, side: Side) -> ShiftMap:
    """M with K(p + k) = M K(p), where K(p) is what position p makes of keys, or queries, of head 0.

    Where there is one, that of position 0 serves: M = K(k) K(0)⁻¹, since K(0) may scale. Else it is
    the best in the sense of least squares.
    """
    check_memory(3 * min(length, BLOCK) * encoding.head_dim**2 * key_heads(encoding))
    _check_linear(encoding, side)
    here, there = (_made(encoding, torch.tensor([place]), side)[0] for place in (0, offset))
    matrix = (
        there
        if torch.equal(here, torch.eye(len(here), dtype=here.dtype))
        else there @ torch.linalg.pinv(here)
    )
    worst = _error(encoding, matrix, offset, length, side)
    if worst < ROUNDING:
        return ShiftMap(offset, matrix, worst, True, "")
    across, own = torch.zeros_like(matrix), torch.zeros_like(matrix)
    for before, after in _moved(encoding, offset, length, side):
        across += (after @ before.mT).sum(0)
        own += (before @ before.mT).sum(0)
    matrix = across @ torch.linalg.pinv(own, hermitian=True)
    worst = _error(encoding, matrix, offset, length, side)
    return ShiftMap(offset, matrix, worst, False, f"no map takes {side} of every position along")


def _error(
    encoding: QueryKeyEncoding, matrix: Tensor, offset: int, length: int, side: Side
) -> float:
    moved = _moved(encoding, offset, length, side)
    return max((matrix @ before - after).abs().max().item() for before, after in moved)


def _moved(
    encoding: QueryKeyEncoding, offset: int, length: int, side: Side
) -> Iterator[tuple[Tensor, Tensor]]:
    """K(p) and K(p + offset) of all positions, some at a time."""
    for begin in range(0, length, BLOCK):
        before = consecutive(min(BLOCK, length - begin), start=begin)
        yield _made(encoding, before, side), _made(encoding, before + offset, side)


def _made(encoding: QueryKeyEncoding, positions: Tensor, side: Side) -> Tensor:
    """What each position makes of queries, or keys: [positions, head_dim, head_dim]."""
    width = encoding.head_dim
    units = torch.eye(width, dtype=torch.float64)
    return _encoded(encoding, units.expand(len(positions), -1, -1), positions, side).mT


def _encoded(encoding: QueryKeyEncoding, x: Tensor, positions: Tensor, side: Side) -> Tensor:
    """What is [positions, many, head_dim] of head 0, all of one position at a time, encoded."""
    table = encoding.table(positions.unsqueeze(1).expand(-1, x.shape[1]), dtype=torch.float64)
    axis = 1 if encoding.heads_first else 2
    several = [-1] * 4
    several[axis] = key_heads(encoding)
    content = x.unsqueeze(axis).expand(several).contiguous()
    encode = encoding.encode_queries if side == "queries" else encoding.encode_keys
    return encode(content, table).select(axis, 0)


def _check_linear(encoding: QueryKeyEncoding, side: Side) -> None:
    nothing = torch.zeros(1, 1, encoding.head_dim, dtype=torch.float64)
    if _encoded(encoding, nothing, consecutive(1), side).any():
        raise UserError(
            f"{type(encoding).__name__} changes {side} by more than a linear map (zeros do not "
            "stay zeros), so no matrix moves them; posenc distance shows its scores"
        )


@torch.no_grad()
def bias_change(encoding: ScoreBias, offset: int, length: int) -> float:
    """The largest change of a bias when all queries and keys move by ``offset``."""
    keys, worst = consecutive(length), 0.0
    for begin in range(0, length, BLOCK):
        queries = keys[begin : begin + BLOCK]
        here = encoding.table(queries, keys, dtype=torch.float64)
        there = encoding.table(queries + offset, keys + offset, dtype=torch.float64)
        worst = max(worst, (here - there).abs().max().item())
    return worst


def alike(keys: ShiftMap, queries: ShiftMap) -> bool:
    """Whether queries move as keys do."""
    apart = (keys.matrix - queries.matrix).abs().max().item()
    return keys.exact == queries.exact and apart < ROUNDING


def _told(found: ShiftMap, what: str = "everything") -> str:
    if not found.exact:
        return f"the best map ({found.reason})"
    stays = torch.eye(len(found.matrix), dtype=found.matrix.dtype)
    if (found.matrix - stays).abs().max().item() < ROUNDING:
        return f"{what} stays where it is"
    if (found.matrix @ found.matrix.mT - stays).abs().max().item() >= ROUNDING:
        return "one map, which scales too"
    # A pair is two channels that no other takes part in, unlike those of a plane across many.
    by_pair = (found.matrix.abs() >= ROUNDING).sum(1).max().item() <= 2
    return "the rotation of each pair" if by_pair else "one rotation"


def show(found: ShiftMap, offset: int, length: int, queries: ShiftMap | None = None) -> None:
    """Prints as much of the matrix as there is room for, and its error.

    Args:
        found: The map of a token encoding, or of keys.
        offset: How far it moves.
        length: How many positions were looked at.
        queries: The map of queries, where ``found`` is that of keys.
    """
    screen, width = console(), len(found.matrix)
    most = max(2, (screen.width - 12) // 11) if screen.is_terminal else width
    headers = ["to \\ from", *(str(j) for j in range(min(most, width)))]
    body = [
        [str(i), *(number(v) for v in row[:most])]
        for i, row in enumerate(found.matrix[:most].tolist())
    ]
    sign = "=" if found.exact else "≈"
    moves = f"PE(p + {offset}) {sign} M PE(p)"
    screen.print(f"{moves}{'' if queries is None else ' of keys'}, with M =")
    screen.grid(headers, body)
    if most < width:
        screen.print(f"{most} of {width} rows and columns fit; --format csv gives all.")
    over = f"over {length} positions"
    if queries is None or alike(found, queries):
        screen.print(f"{_told(found)}: largest error {found.residual:.2g} {over}")
        return
    for name, each in (("key", found), ("query", queries)):
        screen.print(
            f"{name}: {_told(each, f'every {name}')}: largest error {each.residual:.2g} {over}"
        )
