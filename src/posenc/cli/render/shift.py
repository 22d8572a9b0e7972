"""The map of a shift, of whatever encoding, and how it is printed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from posenc.cli.encodings import key_heads
from posenc.cli.errors import UserError
from posenc.cli.limits import check_memory
from posenc.cli.render.grids import number, print_grid
from posenc.cli.render.screen import console
from posenc.encodings.base import QueryKeyEncoding, ScoreBias
from posenc.inspection.shift import ShiftMap, shift_map
from posenc.positions import consecutive

# A map whose error is no more than rounding.
ROUNDING = 1e-9
BLOCK = 64


def shift_of(encoding: Any, offset: int, length: int) -> ShiftMap:
    """The map of a token encoding, or of the keys of one that acts inside attention."""
    if not isinstance(encoding, QueryKeyEncoding):
        check_memory(3 * length * encoding.dim + encoding.dim**2)
        return shift_map(encoding, offset, length=length)
    return _key_map(encoding, offset, length)


@torch.no_grad()
def _key_map(encoding: QueryKeyEncoding, offset: int, length: int) -> ShiftMap:
    """M with K(p + k) = M K(p), where K(p) is what position p makes of the keys of head 0.

    Where there is one, that of position 0 serves: M = K(k) K(0)⁻¹, since K(0) may scale. Else it is
    the best in the sense of least squares.
    """
    check_memory(3 * min(length, BLOCK) * encoding.head_dim**2 * key_heads(encoding))
    _check_linear(encoding)
    here, there = (_keys(encoding, torch.tensor([place]))[0] for place in (0, offset))
    matrix = (
        there
        if torch.equal(here, torch.eye(len(here), dtype=here.dtype))
        else there @ torch.linalg.pinv(here)
    )
    worst = _error(encoding, matrix, offset, length)
    if worst < ROUNDING:
        return ShiftMap(offset, matrix, worst, True, "")
    across, own = torch.zeros_like(matrix), torch.zeros_like(matrix)
    for before, after in _moved(encoding, offset, length):
        across += (after @ before.mT).sum(0)
        own += (before @ before.mT).sum(0)
    matrix = across @ torch.linalg.pinv(own, hermitian=True)
    worst = _error(encoding, matrix, offset, length)
    return ShiftMap(offset, matrix, worst, False, "no map takes keys of every position along")


def _error(encoding: QueryKeyEncoding, matrix: Tensor, offset: int, length: int) -> float:
    moved = _moved(encoding, offset, length)
    return max((matrix @ before - after).abs().max().item() for before, after in moved)


def _moved(encoding: QueryKeyEncoding, offset: int, length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """K(p) and K(p + offset) of all positions, some at a time."""
    for begin in range(0, length, BLOCK):
        before = consecutive(min(BLOCK, length - begin), start=begin)
        yield _keys(encoding, before), _keys(encoding, before + offset)


def _keys(encoding: QueryKeyEncoding, positions: Tensor) -> Tensor:
    """What each position makes of a key, as a matrix: [positions, head_dim, head_dim]."""
    width = encoding.head_dim
    units = torch.eye(width, dtype=torch.float64)
    return _encoded(encoding, units.expand(len(positions), -1, -1), positions).mT


def _encoded(encoding: QueryKeyEncoding, keys: Tensor, positions: Tensor) -> Tensor:
    """Keys [positions, many, head_dim] of head 0, all of one position at a time, encoded."""
    table = encoding.table(positions.unsqueeze(1).expand(-1, keys.shape[1]), dtype=torch.float64)
    axis = 1 if encoding.heads_first else 2
    several = [-1] * 4
    several[axis] = key_heads(encoding)
    content = keys.unsqueeze(axis).expand(several).contiguous()
    return encoding.encode_keys(content, table).select(axis, 0)


def _check_linear(encoding: QueryKeyEncoding) -> None:
    nothing = torch.zeros(1, 1, encoding.head_dim, dtype=torch.float64)
    if _encoded(encoding, nothing, consecutive(1)).any():
        raise UserError(
            f"{type(encoding).__name__} changes keys by more than a linear map (zeros do not stay "
            "zeros), so no matrix moves them; posenc distance shows its scores"
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


def _told(found: ShiftMap) -> str:
    if not found.exact:
        return f"the best map ({found.reason})"
    stays = torch.eye(len(found.matrix), dtype=found.matrix.dtype)
    if (found.matrix - stays).abs().max().item() < ROUNDING:
        return "everything stays where it is"
    if (found.matrix @ found.matrix.mT - stays).abs().max().item() >= ROUNDING:
        return "one map, which scales too"
    # A pair is two channels that no other takes part in, unlike those of a plane across many.
    by_pair = (found.matrix.abs() >= ROUNDING).sum(1).max().item() <= 2
    return "the rotation of each pair" if by_pair else "one rotation"


def show(found: ShiftMap, offset: int, length: int) -> None:
    """Prints as much of the matrix as there is room for, and its error."""
    screen, width = console(), len(found.matrix)
    most = max(2, (screen.width - 12) // 11) if screen.is_terminal else width
    headers = ["to \\ from", *(str(j) for j in range(min(most, width)))]
    body = [
        [str(i), *(number(v) for v in row[:most])]
        for i, row in enumerate(found.matrix[:most].tolist())
    ]
    sign = "=" if found.exact else "≈"
    screen.print(f"PE(p + {offset}) {sign} M PE(p), with M =")
    print_grid(screen, headers, body)
    if most < width:
        screen.print(f"{most} of {width} rows and columns fit; --format csv gives all.")
    what = _told(found)
    screen.print(f"{what}: largest error {found.residual:.2g} over {length} positions")
