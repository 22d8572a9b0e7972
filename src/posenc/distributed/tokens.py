"""Some tokens of the rows of a batch: their places, positions, documents, and which are real."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from posenc.backends.specification import AttentionSpecification
from posenc.positions import Coordinates, over_padding


@dataclass(frozen=True, eq=False)
class Tokens:
    """What attention must know of some tokens."""

    rows: Tensor  # [n] or [#batch, n]: the place of each in its row
    positions: Tensor | Coordinates | None  # [n], [#batch, n] or a grid; None: rows
    documents: Tensor | None  # [batch, n]: the number of each token's document
    real: Tensor | None  # [batch, n]: true where a token is no padding

    @property
    def places(self) -> Tensor | Coordinates:
        """Positions, or the places in the row that stand for them."""
        return self.rows if self.positions is None else self.positions

    def __len__(self) -> int:
        return self.rows.shape[-1]


def of_values(
    positions: Tensor | Coordinates | None, change: Callable[[Tensor], Tensor]
) -> Tensor | Coordinates | None:
    """A change of where numbers lie, of whole positions or of coordinates."""
    if isinstance(positions, Coordinates):
        return positions.with_values(change)
    return None if positions is None else change(positions)


def between(
    queries: Tokens, keys: Tokens, given: AttentionSpecification, *, pairwise: bool = True
) -> AttentionSpecification:
    """The specification of attention from some tokens to some, with the rest as ``given``."""
    by_row = given.order_is_that_of_rows and queries.positions is not None
    counted, places = None, keys.places
    if not pairwise and keys.real is not None and isinstance(places, Tensor) and places.ndim < 3:
        counted = over_padding(places, keys.real)
    return replace(
        given,
        q_len=len(queries),
        k_len=len(keys),
        q_positions=queries.places,
        k_positions=queries.places if queries is keys else places,
        k_remapped=counted,
        by_row=by_row,
        q_rows=queries.rows if by_row else None,
        k_rows=keys.rows if by_row else None,
        padding_mask=_of_all(keys.real, given.batch),
        q_padding_mask=_of_all(queries.real, given.batch),
        documents=_of_all(keys.documents, given.batch),
        q_documents=_of_all(queries.documents, given.batch),
    )


def _of_all(told: Tensor | None, batch: int) -> Tensor | None:
    """For every row of the batch, where they were told once for all."""
    return None if told is None else told.expand(batch, -1)


def among(
    tokens: Tokens, given: AttentionSpecification, *, pairwise: bool = True
) -> AttentionSpecification:
    """The same of whole rows among themselves, which need no places where they are in order."""
    spec = between(tokens, tokens, given, pairwise=pairwise)
    plain = tokens.positions is None and tokens.real is None and tokens.documents is None
    if plain:
        spec = replace(spec, q_positions=None, k_positions=None)
    return replace(spec, by_row=given.by_row, q_rows=None, k_rows=None)
