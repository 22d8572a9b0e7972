"""``posenc table``, ``shift``, ``distance`` and ``compare``: the numbers of encodings."""

import sys
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.encodings import chosen, described, name_of, print_note, print_rows, rows_of
from posenc.cli.errors import UserError
from posenc.cli.printing import console, grid, number, options_of, print_csv, print_json, print_line
from posenc.encodings.base import QueryKeyEncoding, TokenEncoding
from posenc.encodings.bias import RelativeBias, ScoreBias
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.inspection.shift import ShiftMap, shift_map
from posenc.inspection.similarity import closest_pair, dot_product_profile
from posenc.inspection.tables import properties_of
from posenc.positions import consecutive

ROUNDING = 1e-9
"""A map whose error is less is exact."""

MOST = 6
"""Rows and columns of a map that a reader is shown."""


def table(asked: Any) -> None:
    """Prints the table block by block, so that a long one needs no memory."""
    rows = rows_of(chosen(asked))
    blocks = rows.blocks(asked.start, asked.length, getattr(torch, asked.dtype))
    if asked.format != "text":
        return print_rows(asked.format, rows, blocks, start=asked.start, dtype=asked.dtype)
    more = 0
    for counted, block in blocks:
        values = zip(counted, block.tolist(), strict=True)
        cells = [[str(place), *map(number, row)] for place, row in values]
        more = grid([rows.counted, *rows.names], cells)
    if more:
        print(f"{more} more of {len(rows.names)} columns do not fit; --format csv prints all.")
    print_note(rows.encoding)


@torch.no_grad()
def distance(asked: Any) -> None:
    """Prints one number for each distance, query − key; those of a bias on both sides of 0."""
    rows, length = rows_of(chosen(asked)), asked.length
    encoding, distances, about = rows.encoding, range(length), {}
    if isinstance(encoding, TokenEncoding):
        lines = {"dot_product": dot_product_profile(encoding, length).tolist()}
        quantity = "dot product" if encoding.keeps_shift else "dot product with row 0"
        about = {"closest": asdict(closest_pair(encoding, length))}
    elif isinstance(encoding, QueryKeyEncoding):
        scores = _scores(encoding, length).tolist()
        names = [f"head_{head}" for head in range(len(scores))] if len(scores) > 1 else ["score"]
        lines = dict(zip(names, scores, strict=True))
        quantity = "score of equal query and key"
        quantity += "" if encoding.is_relative else ", the key at 0,"
    else:
        relative = isinstance(encoding, RelativeBias)
        distances = range(1 - length if relative else 0, length)
        values = rows.between(distances[0], len(distances), torch.float64)
        lines = dict(zip(rows.keys, values.mT.tolist(), strict=True))
        quantity = "bias" if relative else "bias, the key at 0,"
    if asked.format == "csv":
        print_csv(["distance", *lines], zip(distances, *lines.values(), strict=True))
    elif asked.format == "json":
        about = {**described(encoding), "length": length, **about}
        print_json(about, distances=list(distances), **lines)
    else:
        for name, line in lines.items():
            print_line(f"{name}: {line[distances.index(0)]:.4g} at 0", line)
        print(f"{quantity} over the distance query - key, {distances[0]} to {distances[-1]}")
        if pair := about.get("closest"):
            ends = f"positions {pair['first']} and {pair['second']}"
            print(f"closest pair: {ends}, {pair['distance']:.4g} apart")
        print_note(encoding)


def _scores(encoding: QueryKeyEncoding, length: int) -> Tensor:
    """q · k of each head, both (1, …, 1) / √head_dim, the query so many positions after the key."""
    width, positions = encoding.head_dim, consecutive(length)
    x = torch.full((length, 1, width), width**-0.5, dtype=torch.float64)
    queries, keys = (_encoded(encoding, side, x, positions) for side in ("queries", "keys"))
    return torch.einsum("phd,hd->hp", queries[:, 0], keys[0, 0])


@torch.no_grad()
def shift(asked: Any) -> None:
    """Prints the map that moves an encoding, or how much a bias changes."""
    encoding: Any = rows_of(chosen(asked)).encoding
    offset, length, form = asked.offset, asked.length, asked.format
    about = {**described(encoding), "offset": offset, "length": length}
    if isinstance(encoding, ScoreBias):
        return _bias_change(encoding, about, form)
    if isinstance(encoding, QueryKeyEncoding):
        found, queries = (_map_of(encoding, side, offset, length) for side in ("keys", "queries"))
        beside, whose = {"of": "keys", "queries": _as_dict(queries)}, "of keys, "
    else:
        found = queries = shift_map(encoding, offset, length=length)
        beside, whose = {}, ""
    if form == "csv":
        return print_csv([f"from_{j}" for j in range(len(found.matrix))], found.matrix.tolist())
    if form == "json":
        return print_json(about, **_as_dict(found), **beside)
    print(f"PE(p + {offset}) {'=' if found.exact else '≈'} M PE(p), {whose}with M =")
    rows = enumerate(found.matrix[:MOST, :MOST].tolist())
    cells = [[str(index), *map(number, row)] for index, row in rows]
    grid(["to \\ from", *map(str, range(len(cells)))], cells)
    if len(cells) < len(found.matrix):
        print(f"{MOST} of {len(found.matrix)} rows and columns are shown; --format csv gives all.")
    same = torch.allclose(found.matrix, queries.matrix, 0, ROUNDING)
    maps = {"": found} if same else {"key: ": found, "query: ": queries}
    for side, each in maps.items():
        print(f"{side}{_told(each)}: largest error {each.residual:.2g} over {length} positions")
    if whose and (heads := getattr(encoding, "heads", 1)) > 1:
        print(f"This is head 0 of {heads}; each has a map of its own.")


def _bias_change(encoding: ScoreBias, about: dict[str, Any], form: str) -> None:
    """The largest change of a bias when all queries and keys move by the offset."""
    length, offset = about["length"], about["offset"]
    both = consecutive(length), consecutive(length, start=offset)
    one, other = (encoding.table(each, each, dtype=torch.float64) for each in both)
    change = (one - other).abs().max().item()
    if form == "csv":
        raise UserError("a bias has no map to print as csv; take --format json or text")
    if form == "json":
        return print_json(about, largest_change=change)
    print(f"{name_of(encoding)} adds to scores and has no map.")
    print(f"Query and key both moved by {offset}: the bias changes by {change:.2g} at most.")


def _map_of(encoding: QueryKeyEncoding, side: str, offset: int, length: int) -> ShiftMap:
    """M with K(p + k) ≈ M K(p), by least squares, where position p makes K(p) x of x, in head 0."""
    if _encoded(encoding, side, torch.zeros(1, 1, encoding.head_dim), consecutive(1)).any():
        kind = type(encoding).__name__
        raise UserError(f"{kind} does not change {side} by a linear map; see posenc distance")
    x = torch.eye(encoding.head_dim).expand(length, -1, -1)
    both = consecutive(length), consecutive(length, start=offset)
    here, there = (_encoded(encoding, side, x, each)[:, :, 0].flatten(0, 1) for each in both)
    solution = torch.linalg.lstsq(here, there, driver="gelsd").solution
    worst = (here @ solution - there).abs().max().item()
    reason = "" if worst < ROUNDING else f"no map takes {side} of every position along"
    return ShiftMap(offset, solution.mT, worst, not reason, reason)


def _encoded(encoding: QueryKeyEncoding, side: str, x: Tensor, positions: Tensor) -> Tensor:
    """What is [positions, many, head_dim], all of one position at a time; many before heads."""
    table = encoding.table(positions.unsqueeze(1).expand(-1, x.shape[1]), dtype=torch.float64)
    axis = 1 if encoding.heads_first else 2
    content = x.double().unsqueeze(axis).repeat_interleave(getattr(encoding, "heads", 1), axis)
    encode = encoding.encode_queries if side == "queries" else encoding.encode_keys
    return encode(content, table).movedim(axis, 2)


def _as_dict(found: ShiftMap) -> dict[str, Any]:
    told = {"residual": found.residual, "exact": found.exact, "reason": found.reason}
    return {**told, "matrix": found.matrix.tolist()}


def _told(found: ShiftMap) -> str:
    if not found.exact:
        return f"the best map ({found.reason})"
    stays = torch.eye(len(found.matrix), dtype=found.matrix.dtype)
    if torch.allclose(found.matrix, stays, 0, ROUNDING):
        return "everything stays where it is"
    if not torch.allclose(found.matrix @ found.matrix.mT, stays, 0, ROUNDING):
        return "one map, which scales too"
    # A pair is two channels that no other takes part in, unlike those of a plane across many.
    by_pair = (found.matrix.abs() >= ROUNDING).sum(1).max().item() <= 2
    return "the rotation of each pair" if by_pair else "one rotation"


def compare(asked: Any) -> None:
    """Prints what can be computed of each convention, side by side."""
    found, refused = {}, {}
    for name in CONVENTIONS:
        try:
            encoding = Sinusoidal(asked.dim, asked.base, name)
        except ValueError as error:
            refused[name] = str(error)
        else:
            found[name] = asdict(properties_of(encoding, asked.length))
    if not found:
        told = "; ".join(dict.fromkeys(refused.values()))
        raise UserError(f"--dim {asked.dim} --base {asked.base:g}: no convention can; {told}")
    if asked.format == "json":
        return print_json(options_of(asked), conventions=found, not_at_dim=list(refused))
    headers = ["convention", *next(iter(found.values()))]
    if asked.format == "csv":
        print_csv(headers, ([name, *row.values()] for name, row in found.items()))
    else:
        rows = [[name, *(f"{x:.3g}" for x in row.values())] for name, row in found.items()]
        grid([header.replace("_", "\n") for header in headers], rows, left=[0])
        formulas = (f"{name}: {CONVENTIONS[name].formula}" for name in found)
        console().print("", *formulas, sep="\n")
    if refused:
        file = sys.stdout if asked.format == "text" else sys.stderr
        print(f"not at dim {asked.dim}: {', '.join(refused)}", file=file)
