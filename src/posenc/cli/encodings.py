"""Which encoding a command is about, its rows of numbers, and what is said of it."""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.errors import UserError, check_heeded, check_one_of
from posenc.cli.printing import described_sinusoid, print_csv
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.bias import RelativeBias, ScoreBias
from posenc.encodings.expression import Encoding, encoding_from
from posenc.positions import consecutive

NOT_TRAINED = "What this encoding learns is seeded, and not trained here: mechanism only."

BLOCK = 1024
"""Positions that are worked out together."""

Blocks = Iterable[tuple[list[int], Tensor]]
"""What some rows are of, and the rows, so many at a time."""


def chosen(asked: Any, *, own_width: bool = True) -> Encoding:
    """The encoding of ``--encoding``, drawn from ``--seed``, or the sinusoidal one of ``--dim``."""
    if asked.encoding is None:
        base = 10_000.0 if asked.base is None else asked.base
        return Sinusoidal(asked.dim, base, asked.convention or "paper")
    why = "beside --encoding"
    check_heeded(asked, dim=own_width and why, base=why, convention=why)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(asked.seed)
        return encoding_from(asked.encoding)


def name_of(encoding: Encoding) -> str:
    """The encoding in one line, as it would be written: itself, and what it wraps."""
    if not isinstance(encoding, torch.nn.Module):
        return repr(encoding)
    arguments = inspect.signature(type(encoding)).parameters
    first = next(iter(arguments), "")
    wrapped = {name: name_of(each) for name, each in encoding.named_children()
               if name in arguments and isinstance(each, Encoding)}  # fmt: skip
    lead = wrapped.pop(first, "")
    told = encoding.extra_repr()
    others = [f"{name}={each}" for name, each in wrapped.items() if f"{name}=" not in told]
    parts = ", ".join(filter(None, [lead, told, *others]))
    return f"{type(encoding).__name__}({parts})"


def described(encoding: Encoding) -> dict[str, object]:
    """What JSON says of an encoding."""
    if isinstance(encoding, Sinusoidal):
        said = described_sinusoid(encoding)
        return said if is_plain(encoding) else {**said, "encoding": name_of(encoding)}
    note = {"note": NOT_TRAINED} if learns(encoding) else {}
    return {"encoding": name_of(encoding), **note}


def is_plain(encoding: Sinusoidal) -> bool:
    """Whether its width, base and convention are all that it was given."""
    plain = Sinusoidal(encoding.dim, encoding.base, encoding.convention)
    return plain.extra_repr() == encoding.extra_repr()


def print_note(encoding: Encoding) -> None:
    """Says below the numbers that those which are learned are none of a trained model."""
    if learns(encoding):
        print(NOT_TRAINED)


def learns(encoding: Encoding) -> bool:
    """Whether some of its numbers are learned."""
    return isinstance(encoding, torch.nn.Module) and any(True for _ in encoding.parameters())


@dataclass(frozen=True)
class Rows:
    """What positions alone say: a row of numbers for each position, or for each distance."""

    encoding: Encoding
    counted: str  # "position", or "distance" (query − key), or "query" of a matrix
    names: Sequence[str]  # of the numbers of a row
    keys: Sequence[str]  # the same names without blanks
    at: Callable[[Tensor, torch.dtype], Tensor]  # positions [count] to rows [count, names]

    def blocks(self, start: int, length: int, dtype: torch.dtype = torch.float32) -> Blocks:
        """Rows start … start + length − 1."""
        begins = range(start, start + length, BLOCK)
        parts = (consecutive(min(BLOCK, start + length - n), start=n) for n in begins)
        return ((counted.tolist(), self.at(counted, dtype).detach()) for counted in parts)

    def between(self, start: int, length: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """The rows alone, all at once."""
        return torch.cat([block for _, block in self.blocks(start, length, dtype)])


def rows_of(encoding: Any) -> Rows:
    """The rows of an encoding, wherever it acts; it refuses one without rows along one line."""
    try:
        if isinstance(encoding, TokenEncoding) and encoding.is_pointwise:
            return _token_rows(encoding)
        if isinstance(encoding, QueryKeyEncoding):
            return _query_key_rows(encoding)
        if isinstance(encoding, ScoreBias):
            return _bias_rows(encoding)
    except (ValueError, TypeError, IndexError) as error:
        raise UserError(f"{name_of(encoding)} cannot be shown along one line: {error}") from None
    kind, why = type(encoding).__name__, "has no table of its own; give one, as Rotary(64)"
    if isinstance(encoding, TokenEncoding | ScoreEncoding):
        why = "goes by content, so positions alone give no numbers; posenc walk shows it"
    raise UserError(f"{kind} {why}")


def _token_rows(encoding: TokenEncoding) -> Rows:
    encoding.table(consecutive(1))  # refuses points of a grid
    names = [str(index) for index in range(encoding.dim)]
    keys = [f"dim_{name}" for name in names]
    if isinstance(encoding, Sinusoidal):
        channels = encoding.convention.channels(encoding.dim, encoding.base)
        names = [f"{index} {channel.function}" for index, channel in enumerate(channels)]
    return Rows(encoding, "position", names, keys, lambda p, dtype: encoding.table(p, dtype=dtype))


KINDS = {2: ("cos", "sin"), 4: ("q cos", "q sin", "k cos", "k sin")}


def _query_key_rows(encoding: QueryKeyEncoding) -> Rows:
    table, row = encoding.table, encoding.table(consecutive(1))[0]
    kinds, by_head = KINDS.get(len(row), ()), row.ndim == 3
    # The first position is turned by nothing: cosines are 1 or more, and sines 0.
    turns = row.ndim == 2 and bool(row[0::2].all()) and not row[1::2].any()
    if not kinds or not (by_head or turns):
        names = [str(index) for index in range(row.numel())]
        keys = [f"number_{name}" for name in names]
        return Rows(encoding, "position", names, keys, lambda p, d: table(p, dtype=d).flatten(1))
    heads = [f"head {head} " for head in range(row.shape[1])] if by_head else [""]
    told = [(head, pair, k) for head in heads for pair in range(row.shape[-1]) for k in kinds]
    names = [f"{head}{pair} {kind}" for head, pair, kind in told]
    keys = [f"{head}{kind} {pair}".replace(" ", "_") for head, pair, kind in told]

    def at(positions: Tensor, dtype: torch.dtype) -> Tensor:
        return table(positions, dtype=dtype).movedim(1, -1).flatten(1)

    return Rows(encoding, "position", names, keys, at)


def _bias_rows(encoding: ScoreBias) -> Rows:
    names = [f"head {head}" for head in range(encoding.heads)]
    keys = [f"head_{head}" for head in range(encoding.heads)]

    def at(distance: Tensor, dtype: torch.dtype) -> Tensor:
        if isinstance(encoding, RelativeBias):
            return encoding.profile(distance, dtype=dtype).mT
        # The first of both at 0, so that a distance has one number, whatever stands beside it.
        queries, keys = distance.clamp(min=0).unsqueeze(-1), (-distance).clamp(min=0).unsqueeze(-1)
        return encoding.table(queries, keys, dtype=dtype).flatten(1)

    at(consecutive(1), torch.float32)
    return Rows(encoding, "distance", names, keys, at)


def bias_rows(encoding: Any, head: int, start: int, length: int) -> Rows:
    """One head of a bias as a matrix: a row a query, a column a key, at the same positions."""
    check_one_of("--head", head, encoding.heads)
    table, positions = encoding.table, consecutive(length, start=start)
    names = [str(position) for position in positions.tolist()]
    keys = [f"key_{name}" for name in names]
    return Rows(encoding, "query", names, keys, lambda p, d: table(p, positions, dtype=d)[head])


def digits(vectors: Tensor) -> list[list[str]]:
    """The shortest digits that read back as the same number of this dtype."""
    if vectors.dtype == torch.bfloat16:
        vectors = vectors.float()  # exact; numpy has no bfloat16
    return [list(map(str, vector)) for vector in vectors.numpy()]


def print_rows(
    form: str, rows: Rows, blocks: Blocks, columns: Sequence[int] = (), **about: Any
) -> None:
    """Some columns of a table, or all, as csv or json; block by block, so it may be of any size."""
    picked = list(columns or range(len(rows.keys)))
    keys = [rows.keys[index] for index in picked]
    lines = ((p, row) for ps, x in blocks for p, row in zip(ps, digits(x[:, picked]), strict=True))
    if form == "csv":
        return print_csv([rows.counted, *keys], ([p, *row] for p, row in lines))
    about = {**described(rows.encoding), **about, "columns": keys}
    told = json.dumps(about, ensure_ascii=False)
    sys.stdout.write(f'{told[:-1]}, "rows": [')
    before = "\n"
    for _, row in lines:
        cells = ("null" if each.strip("-") in ("inf", "nan") else each for each in row)
        sys.stdout.write(f"{before}[{', '.join(cells)}]")
        before = ",\n"
    sys.stdout.write("\n]}\n")
