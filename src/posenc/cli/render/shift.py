"""The map of a shift, of whatever encoding, and how it is printed."""

from typing import Any, Literal

import torch
from torch import Tensor

from posenc.cli.encodings import chosen, described, key_heads, name_of
from posenc.cli.errors import UserError
from posenc.cli.render import formats
from posenc.cli.render.screen import console, number
from posenc.cli.rows import rows_of
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.bias import ScoreBias
from posenc.inspection.shift import ShiftMap, shift_map
from posenc.positions import consecutive

ROUNDING = 1e-9
"""A map whose error is less is exact."""

Side = Literal["queries", "keys"]


@torch.no_grad()
def shift_of(encoding: Any, offset: int, length: int, side: Side = "keys") -> ShiftMap:
    """M with K(p + k) = M K(p), where K(p) is what position p makes of keys, or queries, of head 0.

    That of position 0 where it serves, M = K(k) K(0)⁻¹, else the best by least squares.
    """
    if not isinstance(encoding, QueryKeyEncoding):
        return shift_map(encoding, offset, length=length)
    if _encoded(encoding, torch.zeros(1, 1, encoding.head_dim), consecutive(1), side).any():
        kind = type(encoding).__name__
        raise UserError(f"{kind} does not change {side} by a linear map; see posenc distance")
    here, there = (
        _encoded(encoding, torch.eye(encoding.head_dim).expand(length, -1, -1), positions, side).mT
        for positions in (consecutive(length), consecutive(length, start=offset))
    )
    matrix = there[0] @ torch.linalg.pinv(here[0])
    if (worst := (matrix @ here - there).abs().max().item()) < ROUNDING:
        return ShiftMap(offset, matrix, worst, True, "")
    across, own = (there @ here.mT).sum(0), (here @ here.mT).sum(0)
    matrix = across @ torch.linalg.pinv(own, hermitian=True)
    worst = (matrix @ here - there).abs().max().item()
    return ShiftMap(offset, matrix, worst, False, f"no map takes {side} of every position along")


def _encoded(encoding: QueryKeyEncoding, x: Tensor, positions: Tensor, side: Side) -> Tensor:
    """What is [positions, many, head_dim] of head 0, all of one position at a time, encoded."""
    table = encoding.table(positions.unsqueeze(1).expand(-1, x.shape[1]), dtype=torch.float64)
    axis = 1 if encoding.heads_first else 2
    several = [-1] * 4
    several[axis] = key_heads(encoding)
    content = x.double().unsqueeze(axis).expand(several).contiguous()
    encode = encoding.encode_queries if side == "queries" else encoding.encode_keys
    return encode(content, table).select(axis, 0)


@torch.no_grad()
def bias_change(encoding: ScoreBias, offset: int, length: int) -> float:
    """The largest change of a bias when all queries and keys move by ``offset``."""
    both = consecutive(length), consecutive(length, start=offset)
    one, other = (encoding.table(each, each, dtype=torch.float64) for each in both)
    return (one - other).abs().max().item()


def show(asked: Any) -> None:
    """Prints the map that ``posenc shift`` asks for, or how much a bias changes."""
    encoding: Any = chosen(asked)
    rows_of(encoding)  # refuses what has no rows along one line
    offset, length = asked.offset, asked.length
    about = {**described(encoding), "offset": offset, "length": length}
    if isinstance(encoding, ScoreBias):
        change = bias_change(encoding, offset, length)
        if asked.format == "csv":
            raise UserError("a bias has no map to print as csv; take --format json or text")
        if asked.format == "json":
            return formats.print_json(about, largest_change=change)
        told = f"{name_of(encoding)} adds to scores and has no map. Query and key both moved by"
        return print(f"{told} {offset}: the bias changes by {change:.2g} at most.")
    inside = isinstance(encoding, QueryKeyEncoding)
    found = shift_of(encoding, offset, length)
    queries = shift_of(encoding, offset, length, "queries") if inside else None
    if asked.format == "csv":
        names = [f"from_{j}" for j in range(len(found.matrix))]
        formats.print_csv(names, found.matrix.tolist())
    elif asked.format == "json":
        beside = {} if queries is None else {"of": "keys", "queries": _as_dict(queries)}
        formats.print_json(about, **_as_dict(found), **beside)
    else:
        _print(found, length, queries)
        if inside and key_heads(encoding) > 1:
            print(f"This is head 0 of {key_heads(encoding)}; each has a map of its own.")


def _as_dict(found: ShiftMap) -> dict[str, Any]:
    told = {"residual": found.residual, "exact": found.exact, "reason": found.reason}
    return {**told, "matrix": found.matrix.tolist()}


def _print(found: ShiftMap, length: int, queries: ShiftMap | None) -> None:
    """As much of the matrix as there is room for, and its error."""
    screen, width = console(), len(found.matrix)
    most = min(width, max(2, (screen.width - 12) // 11) if screen.is_terminal else width)
    sign, whose = "=" if found.exact else "≈", "" if queries is None else " of keys"
    screen.print(f"PE(p + {found.offset}) {sign} M PE(p){whose}, with M =")
    rows = enumerate(found.matrix[:most, :most].tolist())
    headers = ["to \\ from", *map(str, range(most))]
    screen.grid(headers, [[str(index), *map(number, row)] for index, row in rows])
    if most < width:
        screen.print(f"{most} of {width} rows and columns fit; --format csv gives all.")
    maps = {"": found}
    if queries is not None and (
        queries.exact != found.exact or (found.matrix - queries.matrix).abs().max() >= ROUNDING
    ):
        maps = {"key: ": found, "query: ": queries}
    for name, each in maps.items():
        error = f"largest error {each.residual:.2g} over {length} positions"
        screen.print(f"{name}{_told(each)}: {error}")


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
