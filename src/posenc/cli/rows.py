"""What the positions of an encoding say, as rows of numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.encodings import name_of
from posenc.cli.errors import UserError, check_memory, check_range
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.bias import RelativeBias, ScoreBias
from posenc.encodings.expression import Encoding
from posenc.positions import consecutive

# Positions that are worked out together.
BLOCK = 1024


@dataclass(frozen=True)
class Rows:
    """What positions alone say: a row of numbers for each position, or for each distance.

    Attributes:
        counted: What the rows count: "position", or "distance" (query − key).
        columns: A name for each number of a row.
        keys: The same names as programs like them, without blanks.
        at: From positions or distances [count] and a dtype to rows [count, columns].
        first: Where the encoding begins to count.
        across: What the columns are, together.
    """

    counted: str
    columns: Sequence[str]
    keys: Sequence[str]
    at: Callable[[Tensor, torch.dtype], Tensor]
    first: int = 0
    across: str = "dimension (index)"

    def blocks(
        self, start: int, length: int, dtype: torch.dtype = torch.float32
    ) -> Iterator[tuple[list[int], Tensor]]:
        """What rows start … start + length − 1 are of, and the rows, some at a time."""
        # At once, not when the first block is asked for: a header may have been printed by then.
        check_range(start, length, first=self.first)
        return self._blocks(start, length, dtype)

    def _blocks(
        self, start: int, length: int, dtype: torch.dtype
    ) -> Iterator[tuple[list[int], Tensor]]:
        for begin in range(start, start + length, BLOCK):
            # Added, since a range up to the last position would end beyond it.
            counted = consecutive(min(BLOCK, start + length - begin)) + begin
            with torch.no_grad():
                yield counted.tolist(), self.at(counted, dtype)

    def between(self, start: int, length: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """The rows alone, all at once."""
        check_memory(length * len(self.columns))
        return torch.cat([block for _, block in self.blocks(start, length, dtype)])

    def means(self, start: int, length: int, most: int) -> tuple[Tensor, int]:
        """At most ``most`` rows, each the mean of so many rows of the table as the number says.

        What is drawn with fewer lines than rows would else show every n-th of them, whose pattern
        is none of the table's.

        Example:
            >>> from posenc.encodings.expression import encoding_from
            >>> means, each = rows_of(encoding_from("Sinusoidal(2)")).means(0, 1000, 10)
            >>> means.shape, each, bool(means.abs().max() < 0.03)
            (torch.Size([10, 2]), 100, True)
        """
        each = -(-length // most)
        if each == 1:
            return self.between(start, length), 1
        sums = torch.zeros(-(-length // each), len(self.columns), dtype=torch.float64)
        for counted, block in self.blocks(start, length):
            places = (torch.tensor(counted) - start) // each
            sums.index_add_(0, places, block.double())
        counts = torch.full((len(sums), 1), each, dtype=torch.float64)
        counts[-1] = length - each * (len(sums) - 1)
        return (sums / counts).float(), each


def rows_of(encoding: Encoding) -> Rows:
    """The rows of an encoding, wherever it acts.

    Raises:
        UserError: Positions alone say nothing in it, or positions along one line are not enough.

    Example:
        >>> from posenc import ALiBi, Rotary
        >>> rows_of(Rotary(4)).columns
        ['0 cos', '0 sin', '1 cos', '1 sin']
        >>> rows_of(ALiBi(2)).at(torch.tensor([1, 16]), torch.float32)
        tensor([[-0.0625, -0.0039],
                [-1.0000, -0.0625]])
    """
    try:
        if isinstance(encoding, TokenEncoding):
            return _token_rows(encoding)
        if isinstance(encoding, QueryKeyEncoding):
            return _query_key_rows(encoding)
        if isinstance(encoding, ScoreBias):
            return _bias_rows(encoding)
    except (ValueError, TypeError, IndexError) as error:
        raise UserError(f"{name_of(encoding)} cannot be shown along one line: {error}") from None
    kind = type(encoding).__name__
    if isinstance(encoding, ScoreEncoding):
        raise UserError(
            f"{kind} changes scores by their own content or size, so positions alone give no "
            "numbers; posenc walk --encoding shows it on a sentence"
        )
    raise UserError(f"{kind} has no table of its own; give one encoding, as Rotary(64) or ALiBi(8)")


def _token_rows(encoding: TokenEncoding) -> Rows:
    if not encoding.is_pointwise:
        raise UserError(
            f"{type(encoding).__name__} makes its numbers of the embeddings around a token, so "
            "positions alone give none"
        )
    encoding.table(consecutive(1))  # refuses points of a grid
    keys = [f"dim_{index}" for index in range(encoding.dim)]
    if not isinstance(encoding, Sinusoidal):
        names = [str(index) for index in range(encoding.dim)]
        return Rows("position", names, keys, lambda p, dtype: encoding.table(p, dtype=dtype))
    channels = encoding.convention.channels(encoding.dim, encoding.base)
    names = [f"{index} {channel.function}" for index, channel in enumerate(channels)]
    first = encoding.offset + encoding.convention.first
    return Rows("position", names, keys, lambda p, dtype: encoding.table(p, dtype=dtype), first)


KINDS = {2: ("cos", "sin"), 4: ("q cos", "q sin", "k cos", "k sin")}


def _query_key_rows(encoding: QueryKeyEncoding) -> Rows:
    table = encoding.table(consecutive(1))
    shape = table.shape[1:]
    if not (_is_by_head(shape) or _turns(table)):
        names = [str(index) for index in range(shape.numel())]
        keys = [f"number_{name}" for name in names]
        return Rows("position", names, keys, lambda p, d: encoding.table(p, dtype=d).flatten(1))
    kinds = [(pair, kind) for pair in range(shape[-1]) for kind in KINDS[shape[0]]]
    heads = [f"head {head} " for head in range(shape[1])] if _is_by_head(shape) else [""]
    names = [f"{head}{pair} {kind}" for head in heads for pair, kind in kinds]
    keys = [f"{head}{kind} {pair}".replace(" ", "_") for head in heads for pair, kind in kinds]
    across = f"{', '.join(KINDS[shape[0]])} of pair 0, of pair 1, … (column)"

    def at(positions: Tensor, dtype: torch.dtype) -> Tensor:
        return encoding.table(positions, dtype=dtype).movedim(1, -1).flatten(1)

    if len(heads) > 1:
        across = f"{across}, head by head"
    return Rows("position", names, keys, at, across=across)


def _is_by_head(shape: torch.Size) -> bool:
    """Whether a row of the table is [kinds, heads, pairs]."""
    return len(shape) == 3 and shape[0] in KINDS


def _turns(table: Tensor) -> bool:
    """Whether a row is cosines and sines by turns: the first position is turned by nothing."""
    shape = table.shape[1:]
    if len(shape) != 2 or shape[0] not in KINDS:
        return False
    return bool(table[0, 0::2].all()) and not table[0, 1::2].any()


def _bias_rows(encoding: ScoreBias) -> Rows:
    names = [f"head {head}" for head in range(encoding.heads)]
    keys = [f"head_{head}" for head in range(encoding.heads)]
    if isinstance(encoding, RelativeBias):
        return Rows("distance", names, keys, lambda d, dtype: encoding.profile(d, dtype=dtype).mT)

    def at(distance: Tensor, dtype: torch.dtype) -> Tensor:
        # Each with the first of both at 0, so that a distance has one number, whichever others are
        # asked for beside it.
        queries, keys = distance.clamp(min=0).unsqueeze(-1), (-distance).clamp(min=0).unsqueeze(-1)
        return encoding.table(queries, keys, dtype=dtype).flatten(1)

    at(consecutive(1), torch.float32)
    return Rows("distance", names, keys, at)


class KeptSinusoidal(Sinusoidal):
    """A sinusoidal encoding that keeps its float64 rows, for who looks at them several times.

    Args:
        length: Rows 0 … length − 1 are kept.
        dim: As of ``Sinusoidal``.
        base: Likewise.
        convention: Likewise.

    Example:
        >>> kept = KeptSinusoidal(100, 8, 10_000.0, "paper")
        >>> rows = kept.table(torch.arange(3, 50), dtype=torch.float64)
        >>> rows.data_ptr() == kept.kept[3].data_ptr()
        True
    """

    def __init__(self, length: int, dim: int, base: float, convention: str):
        super().__init__(dim, base, convention)
        check_memory(3 * length * dim)
        self.kept = super().table(consecutive(length), dtype=torch.float64)

    def table(
        self, positions: Any, *, dtype: torch.dtype | None = None, out: Tensor | None = None
    ) -> Tensor:
        """The rows of consecutive positions as they are kept; others are computed."""
        if dtype == torch.float64 and out is None and len(positions):
            first, last = int(positions[0]), int(positions[-1])
            run_on = last - first + 1 == len(positions)
            if run_on and first >= 0 and last < len(self.kept):
                return self.kept[first : last + 1]
        return super().table(positions, dtype=dtype, out=out)


MOST_QUERIES = 4096


def bias_rows(encoding: Encoding, head: int, start: int, length: int) -> Rows:
    """One head of a bias as a matrix: a row a query, a column a key, at the same positions.

    Raises:
        UserError: There is no such head, or the matrix would be too large to look at.
    """
    assert isinstance(encoding, ScoreBias)
    check_range(start, length)
    if not 0 <= head < encoding.heads:
        raise UserError(f"--head is {head}; it must be one of 0 … {encoding.heads - 1}")
    if length > MOST_QUERIES:
        raise UserError(
            f"--length is {length}; a bias is drawn query by key, up to {MOST_QUERIES}. "
            "posenc curves and posenc distance draw it over the distance alone"
        )
    positions = consecutive(length, start=start)
    names = [str(position) for position in positions.tolist()]

    def at(queries: Tensor, dtype: torch.dtype) -> Tensor:
        if not isinstance(encoding, RelativeBias):
            return encoding.table(queries, positions, dtype=dtype)[head]
        # A query further on sees the same numbers one place further on.
        reach = consecutive(length + len(queries) - 1, start=int(queries[0] - positions[-1]))
        profile = encoding.profile(reach, dtype=dtype)[head]
        return profile.unfold(0, length, 1).flip(1)

    return Rows("query", names, [f"key_{name}" for name in names], at)
