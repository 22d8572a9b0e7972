"""Where the queries and keys of one call of attention stand, and what hides one from the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from posenc.backends.masks import hides, joined, not_later
from posenc.guards import may_look
from posenc.positions import Coordinates
from posenc.positions.distances import pair_distances

Value = TypeVar("Value")


class once(Generic[Value]):
    """A property that is computed once; Dynamo cannot trace ``functools.cached_property``."""

    def __init__(self, compute: Callable[[Any], Value]):
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value = self.compute(instance)
        setattr(instance, self.name, value)
        return value


def known(condition: Any) -> bool:
    """Whether a condition on sizes holds; in a graph, whether it holds for all that it may meet."""
    return statically_known_true(condition) if torch.compiler.is_compiling() else condition


OF_QUERIES = "q_positions", "q_remapped", "q_rows", "q_padding_mask", "q_documents"
OF_KEYS = "k_positions", "k_remapped", "k_rows", "padding_mask", "documents"


@dataclass(eq=False)  # frozen, it would take four times as long to build
class AttentionSpecification:
    """Queries and keys of one call of attention, and who may see whom."""

    batch: int
    q_len: int
    k_len: int
    # [q_len], [#batch, q_len] or a grid [#batch, q_len, axes]; None: keys stand at 0, 1, 2, … and
    # queries at the last of these. Coordinates of both have one scale.
    q_positions: Tensor | Coordinates | None = None
    k_positions: Tensor | Coordinates | None = None
    # Where encodings take tokens to stand, if elsewhere; order and windows stay with the above.
    q_remapped: Tensor | Coordinates | None = None
    k_remapped: Tensor | Coordinates | None = None
    is_causal: bool = False
    by_row: bool = False  # whether "later" means further along the row, and not a larger position
    # The place of the first query in the row of keys; None: the queries are the last. A tensor of
    # one element where a graph must not depend on it.
    first_row: int | Tensor | None = None
    q_rows: Tensor | None = None  # [q_len] or [#batch, q_len]: places in a row of which these are
    k_rows: Tensor | None = None  # a part, by which "later" goes then
    window: int | None = None  # how many positions a query sees to each side, its own among them
    padding_mask: Tensor | None = None  # [batch, k_len], true where a key is real
    q_padding_mask: Tensor | None = None  # [batch, q_len], true where a query is real
    documents: Tensor | None = None  # [batch, k_len]: equal numbers are one document
    q_documents: Tensor | None = None  # [batch, q_len], given if documents are
    attn_mask: Tensor | None = None  # any other mask, boolean or additive, of four axes
    sinks: Tensor | None = None  # [heads]
    softcap: float | None = None  # c in c · tanh(score / c), before biases are added
    device: torch.device | None = None

    # Parts of it ----------------------------------------------------------------------------------

    def within(self, window: int | None) -> "AttentionSpecification":
        """The same with another window."""
        return self if window == self.window else replace(self, window=window)

    def placed(self) -> "AttentionSpecification":
        """The same with all positions written out and no ``attn_mask``, so that it can be cut."""
        q_rows, k_rows = self.q_rows, self.k_rows
        if q_rows is None and self.order_is_that_of_rows:
            first = self.k_len - self.q_len if self.first_row is None else self.first_row
            q_rows = torch.arange(self.q_len, device=self.device) + first
            k_rows = torch.arange(self.k_len, device=self.device)
        return replace(
            self,
            q_positions=self.query_places if self.q_positions is None else self.q_positions,
            k_positions=self.key_places if self.k_positions is None else self.k_positions,
            first_row=None,
            q_rows=q_rows,
            k_rows=k_rows,
            attn_mask=None,
        )

    def of_queries(self, part: slice) -> "AttentionSpecification":
        """The same for some of the queries, without ``attn_mask``."""
        return replace(self._of(OF_QUERIES, part), q_len=len(range(self.q_len)[part]))

    def of_keys(self, part: slice) -> "AttentionSpecification":
        """The same for some of the keys, without ``attn_mask``."""
        return replace(self._of(OF_KEYS, part), k_len=len(range(self.k_len)[part]))

    def _of(self, names: tuple[str, ...], part: slice) -> "AttentionSpecification":
        whole = self.placed()
        return replace(whole, **{name: _part(getattr(whole, name), part) for name in names})

    # Where tokens stand ---------------------------------------------------------------------------

    @once
    def query_places(self) -> Tensor:
        """Where the queries stand, for order and windows; coordinates in steps of their scale."""
        if self.q_positions is not None:
            return _steps(self.q_positions)
        if known(self.q_len == self.k_len):
            return self.key_places
        return torch.arange(self.k_len - self.q_len, self.k_len, device=self.device)

    @once
    def key_places(self) -> Tensor:
        """Where the keys stand, for order and windows."""
        if self.k_positions is not None:
            return _steps(self.k_positions)
        return torch.arange(self.k_len, device=self.device)

    @once
    def queries(self) -> Tensor | Coordinates:
        """Where encodings take the queries to stand."""
        if self.q_remapped is not None:
            return self.q_remapped
        return self.query_places if self.q_positions is None else self.q_positions

    @once
    def keys(self) -> Tensor | Coordinates:
        """Where encodings take the keys to stand; the tensor of queries where that is the same."""
        if self.k_remapped is not None:
            return self.k_remapped
        return self.key_places if self.k_positions is None else self.k_positions

    @property
    def reach(self) -> int | None:
        """The window in steps of ``query_places`` and ``key_places``."""
        if self.window is None or not isinstance(self.q_positions, Coordinates):
            return self.window
        return self.q_positions.window(self.window)

    # What hides a key -----------------------------------------------------------------------------

    def visible(self) -> Bool[Tensor, "#batch 1 #q_len k_len"] | None:
        """The pairs that may meet, less what ``attn_mask`` says; ``None`` where all may."""
        seen = self._not_later() if self.is_causal else None
        if self.window is not None:
            distance = pair_distances(self.query_places, self.key_places)
            outside = hides(distance, is_causal=False, window=self.reach)
            assert outside is not None
            seen = joined(seen, _four_axes(~outside))
        if self.padding_mask is not None:
            seen = joined(seen, self.padding_mask[:, None, None, :])
        if self.documents is not None:
            assert self.q_documents is not None
            same = self.q_documents[:, :, None] == self.documents[:, None, :]
            seen = joined(seen, same[:, None])
        return seen

    def _not_later(self) -> Tensor:
        if self.q_rows is not None and self.k_rows is not None:
            return _four_axes(self.q_rows.unsqueeze(-1) >= self.k_rows.unsqueeze(-2))
        if self.order_is_that_of_rows:
            rows = not_later(self.q_len, self.k_len, first=self.first_row, device=self.device)
            return rows[None, None]
        return _four_axes(self.query_places.unsqueeze(-1) >= self.key_places.unsqueeze(-2))

    @once
    def hides_nothing_but_order(self) -> bool:
        """Whether there is no mask, padding, document or window."""
        no_mask = self.attn_mask is None and self.padding_mask is None
        return no_mask and self.documents is None and self.window is None

    @property
    def hides_padding_alone(self) -> bool:
        """Whether all queries of a row see the same keys."""
        return not self.is_causal and self.window is None and self.documents is None

    @once
    def order_is_that_of_rows(self) -> bool:
        """Whether "later" means further along the row; positions on a grid have no order."""
        unplaced = self.q_positions is None and self.k_positions is None
        return self.by_row or unplaced or self.query_places.ndim > 2

    @once
    def in_step(self) -> bool:
        """Whether each query has its key at the same index, and order rises along the row."""
        if self.first_row is not None or self.q_rows is not None:
            return False
        if not known(self.q_len == self.k_len):
            return False
        if self.order_is_that_of_rows:
            return True
        positions = self.q_positions
        if not isinstance(positions, Tensor) or positions is not self.k_positions:
            return False
        if not may_look(positions):
            return False
        return bool((positions[..., 1:] > positions[..., :-1]).all())  # a difference may wrap

    @property
    def sees_all(self) -> bool:
        """Whether there is one query, the last, from which order hides nothing."""
        placed = self.first_row is not None or self.q_rows is not None
        return not placed and known(self.q_len == 1) and self.order_is_that_of_rows

    @property
    def is_one_segment(self) -> bool:
        """Whether queries and keys are one run each in all rows, known without a look."""
        masked = self.attn_mask is not None or self.padding_mask is not None
        if masked or self.documents is not None or self.q_remapped is not None:
            return False
        unplaced = self.q_positions is None and self.k_positions is None
        return unplaced and self.first_row is None and self.q_rows is None

    @once
    def is_empty(self) -> bool:
        """Whether there is no pair of a query and a key."""
        return known(self.batch * self.q_len * self.k_len == 0)


def _steps(positions: Tensor | Coordinates) -> Tensor:
    return positions.values if isinstance(positions, Coordinates) else positions


def _part(told: Any, part: slice) -> Any:
    """A part of what is given for each token: a tensor, coordinates, or ``None``."""
    if told is None:
        return None
    return told[:, part] if told.ndim > 2 else told[..., part]


def _four_axes(seen: Tensor) -> Tensor:
    """[*batch, q_len, k_len] → [batch, 1, q_len, k_len]."""
    return seen[None, None] if seen.ndim == 2 else seen[:, None]
