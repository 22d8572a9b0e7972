"""One number for each distance between query and key, of whatever encoding."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from posenc.cli.encodings import chosen, described, key_heads, print_note
from posenc.cli.render import formats
from posenc.cli.render.screen import console, legend, sparkline
from posenc.cli.rows import rows_of
from posenc.encodings.base import QueryKeyEncoding, TokenEncoding
from posenc.encodings.bias import RelativeBias
from posenc.inspection.similarity import ClosestPair, closest_pair, dot_product_profile
from posenc.positions import consecutive


@dataclass(frozen=True)
class Profile:
    """What an encoding makes of each distance, query − key: a line of numbers for each name."""

    quantity: str
    distances: Sequence[int]
    lines: dict[str, list[float]]
    closest: ClosestPair | None = None


def profile_of(encoding: Any, length: int) -> Profile:
    """The profile of an encoding; a bias has one on both sides of distance 0.

    Example:
        >>> from posenc import ALiBi
        >>> found = profile_of(ALiBi(1), 3)
        >>> list(found.distances), found.lines["head_0"][0]
        ([-2, -1, 0, 1, 2], -0.0078125)
    """
    rows = rows_of(encoding)  # refuses points of a grid
    if isinstance(encoding, TokenEncoding):
        lines = {"dot_product": dot_product_profile(encoding, length).tolist()}
        quantity = "dot product" if encoding.keeps_shift else "dot product with row 0"
        return Profile(quantity, range(length), lines, closest_pair(encoding, length))
    if isinstance(encoding, QueryKeyEncoding):
        scores = _scores(encoding, length).tolist()
        names = [f"head_{head}" for head in range(len(scores))] if len(scores) > 1 else ["score"]
        quantity = "score of equal query and key" + ", the key at 0," * (not encoding.is_relative)
        return Profile(quantity, range(length), dict(zip(names, scores, strict=True)))
    relative = isinstance(encoding, RelativeBias)
    first = 1 - length if relative else 0
    values = rows.between(first, length - first, torch.float64)
    lines = dict(zip(rows.keys, values.mT.tolist(), strict=True))
    return Profile("bias" if relative else "bias, the key at 0,", range(first, length), lines)


@torch.no_grad()
def _scores(encoding: QueryKeyEncoding, length: int) -> torch.Tensor:
    """q · k of each head, both (1, …, 1) / √head_dim, the query so many positions after the key."""
    heads, width, first = key_heads(encoding), encoding.head_dim, encoding.heads_first
    shape = (heads, length, width) if first else (length, heads, width)
    ones = torch.full(shape, width**-0.5, dtype=torch.float64)
    table = encoding.table(consecutive(length), dtype=torch.float64)
    queries = encoding.encode_queries(ones, table)
    keys = encoding.encode_keys(ones, table)
    return (queries @ keys[:, :1].mT).squeeze(-1) if first else (queries * keys[:1]).sum(-1).mT


def show(asked: Any) -> None:
    """Prints what ``posenc distance`` asks for."""
    encoding = chosen(asked)
    found = profile_of(encoding, asked.length)
    if asked.format == "text":
        _print(found)
        print_note(encoding)
    elif asked.format == "csv":
        rows = zip(found.distances, *found.lines.values(), strict=True)
        formats.print_csv(["distance", *found.lines], rows)
    else:
        closest = {} if found.closest is None else {"closest": asdict(found.closest)}
        about = {**described(encoding), "length": asked.length}
        formats.print_json(about, distances=list(found.distances), **found.lines, **closest)


def _print(found: Profile) -> None:
    """Each line as marks from its own least to its greatest, since slopes of heads differ."""
    screen = console()
    names = max(map(len, found.lines)) + 2 if len(found.lines) > 1 else 0
    room = max(8, screen.room - names - 1)
    for name, line in found.lines.items():
        low, high = min(line), max(line)
        scaled = [2 * (value - low) / ((high - low) or 1.0) - 1 for value in line]
        for begin in range(0, len(line), room):
            head = "" if begin or not names else name
            screen.print(head.ljust(names) + sparkline(scaled[begin : begin + room], screen))
        zero = line[found.distances.index(0)]
        ends = legend(screen, f"{low:.4g}", f"{high:.4g}")
        screen.print(" " * names + f"{zero:.4g} at 0; {ends}")
    first, last = found.distances[0], found.distances[-1]
    screen.print(f"{found.quantity} over the distance query - key, {first} to {last}")
    if (pair := found.closest) is not None:
        screen.print(
            f"closest pair: positions {pair.first} and {pair.second}, {pair.distance:.4g} apart"
        )
