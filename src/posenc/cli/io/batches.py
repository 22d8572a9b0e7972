"""Rows of token ids to batches of encoded vectors, one batch in memory at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.errors import UserError
from posenc.cli.io.embeddings import Vectors
from posenc.cli.io.rows import Measure, Row
from posenc.cli.io.writers import Batch
from posenc.positions import consecutive

# Numbers of one batch, where --batch-size leaves the choice: 16 MB of float32.
NUMBERS = 1 << 22


@dataclass(frozen=True)
class Batches:
    """How rows become vectors, and how many at a time.

    Attributes:
        vectors: The embeddings.
        encoding: What adds the positions.
        table: The rows of the table from position 0, as long as the longest row.
        dtype: dtype of the result.
        rows: Most rows of a batch; as many as the tokens allow if not given.
        tokens: Most tokens of a batch, counted with the padding that writing them adds.
        padded: Whether that padding is added, up to the longest row.
    """

    vectors: Vectors
    encoding: Sinusoidal
    table: Tensor
    dtype: torch.dtype
    rows: int | None
    tokens: int
    padded: bool

    @classmethod
    def of(
        cls,
        vectors: Vectors,
        encoding: Sinusoidal,
        found: Measure,
        *,
        dtype: torch.dtype,
        rows: int | None,
        padded: bool,
    ) -> "Batches":
        """The batches of a text that has been measured."""
        wide = torch.promote_types(dtype, torch.float32)
        table = encoding.table(consecutive(found.longest), dtype=wide)
        tokens = max(1, NUMBERS // vectors.dim)
        return cls(vectors, encoding, table, dtype, rows, tokens, padded)

    def each(self, rows: Iterable[Row]) -> Iterator[Batch]:
        """All rows, in order, some at a time."""
        held: list[Row] = []
        held_tokens = before = 0
        for row in rows:
            cost = len(self.table) if self.padded else len(row.ids)
            full = len(held) == self.rows if self.rows else held_tokens + cost > self.tokens
            if held and full:
                yield (batch := self._batch(held, before))
                before, held, held_tokens = before + len(batch.ids), [], 0
            held.append(row)
            held_tokens += cost
        if held:
            yield self._batch(held, before)

    @torch.no_grad()
    def parts(self, ids: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """The embeddings of some tokens, and the rows of the table that belong to them."""
        x = self.vectors.look_up(ids).to(self.table.dtype)
        if positions.max() < len(self.table):
            return x, self.table[positions]
        return x, self.encoding.table(positions, dtype=self.table.dtype)

    @torch.no_grad()
    def _batch(self, rows: list[Row], before: int) -> Batch:
        lengths = torch.tensor([len(row.ids) for row in rows])
        ids = torch.tensor([number for row in rows for number in row.ids])
        positions = torch.cat([consecutive(len(row.ids), start=row.start) for row in rows])
        values = self.encoding.encode(*self.parts(ids, positions)).to(self.dtype)
        if not values.isfinite().all():
            raise UserError(
                f"numbers of lines {rows[0].line} to {rows[-1].line} are beyond "
                f"{str(self.dtype).removeprefix('torch.')}, which ends at "
                f"{torch.finfo(self.dtype).max:.3g}; give a wider --dtype, or smaller --embeddings"
            )
        return Batch(
            values=values,
            ids=ids,
            positions=positions,
            lengths=lengths,
            lines=torch.tensor([row.line for row in rows]),
            before=before,
        )


def as_measured(rows: Iterable[Row], found: Measure) -> Iterator[Row]:
    """The rows, as many and as long as measured: a file that grows meanwhile would not fit.

    Raises:
        UserError: They are others.
    """
    count = tokens = 0
    for row in rows:
        count, tokens = count + 1, tokens + len(row.ids)
        if count > found.rows or tokens > found.tokens or len(row.ids) > found.longest:
            raise UserError("the text changed while it was read; try again")
        yield row
    if (count, tokens) != (found.rows, found.tokens):
        raise UserError("the text changed while it was read; try again")
