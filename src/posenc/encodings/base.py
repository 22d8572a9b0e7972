"""The three places where a position can reach a transformer, and the two verbs of each.

=====================  =======================================  =========================
place                  what positions alone say                 how that meets content
=====================  =======================================  =========================
tokens                 ``table(positions)``                     ``encode(x, table)``
queries and keys       ``table(positions)``                     ``encode_queries(q, table)``,
                                                                ``encode_keys(k, table)``
scores                 ``table(q_positions, k_positions)``      ``encode(scores, table, q=, k=)``
=====================  =======================================  =========================

``table`` is exact, free of content, and an ordinary tensor: compute it once, slice it, gather it,
keep it. ``encode`` keeps the shape and the dtype of its content and never writes into it; where
nothing changes it may return the content itself. ``forward`` is ``encode`` of ``table``; attention
and encoders call these two instead. To write an encoding, subclass one of the classes here and
define ``table`` and ``encode`` (or ``profile``); ``posenc.testing`` checks the result.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.shapes import (
    Attended,
    Dtype,
    Embeddings,
    Heads,
    K,
    Places,
    Q,
    Scale,
    Scores,
    WholePlaces,
    WholeRow,
)
from posenc.encodings.told import Described, arguments_told
from posenc.guards import may_look, working_dtype
from posenc.positions import Coordinates, checked, consecutive


def checked_rows(table: Tensor, positions: Int64[Tensor, "*tokens"]) -> Int64[Tensor, "*tokens"]:
    """``positions`` as rows of a kept table; torch would count negative ones from its end."""
    positions = checked(positions)
    if positions.is_cpu and may_look(positions) and positions.numel():
        first, last = positions.aminmax()
        if first < 0 or last >= len(table):
            held = f"the table has {len(table)} rows"
            raise IndexError(f"positions run from {first} to {last}; {held}.")
    return positions


def check_pairs(name: str, scores: Tensor, table: Tensor) -> None:
    """Refuse a table ``[*rows, heads, q_len, k_len]`` of other scores; it might broadcast."""
    if table.shape[-3:] != scores.shape[-3:]:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and the table of {name} "
            f"{tuple(table.shape)}; heads, queries and keys must be the same."
        )


class PositionRemapping(ABC):
    """A change of the positions themselves, before any encoding sees them.

    Attributes:
        training_only: Whether positions stay as they are in evaluation.
    """

    training_only: ClassVar[bool] = False

    @abstractmethod
    def __call__(
        self, positions: Int64[Tensor, "*batch seq"], *, generator: torch.Generator | None = None
    ) -> Int64[Tensor, "*batch seq"] | Coordinates:
        """The changed positions; ``generator`` draws what is random."""


class TokenEncoding(Described, ABC):
    """Place one: added to, or mixed into, the token embeddings.

    Attributes:
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` (the default) or ``[seq, batch, dim]``.
        keeps_norm: Claim: every row of the table has the same length.
        keeps_shift: Claim: for each offset k one linear map M_k takes row p to row p + k, for
            every p.
        is_pointwise: Claim: the result for a token depends on its own content and position alone.
            Decoding with a cache and cutting sequences among devices need that.
        takes_reals: Claim: ``Coordinates`` may be given as positions, and are as exact.
        keeps_neighbors_apart: Claim: two adjacent whole positions never have the same row.
    """

    dim: int
    batch_first: bool = True
    keeps_norm: bool = False
    keeps_shift: bool = False
    is_pointwise: bool = True
    takes_reals: bool = False
    keeps_neighbors_apart: bool = True

    @abstractmethod
    def table(self, positions: WholeRow, *, dtype: Dtype = None) -> Float[Tensor, "..."]:
        """What ``positions`` alone say, one row a position; float32 unless ``dtype`` is given."""

    @abstractmethod
    def encode(self, x: Embeddings, table: Float[Tensor, "*rows seq dim"]) -> Float[Tensor, "..."]:
        """``x`` with its positions in it, in the shape and dtype of ``x``."""

    def forward(self, x: Embeddings, positions: Places | None = None) -> Float[Tensor, "..."]:
        """``encode(x, table(positions))``; without positions, the tokens stand at 0, 1, 2, …"""
        if positions is None:
            positions = consecutive(x.shape[-2 if self.batch_first else 0], device=x.device)
        else:
            positions = checked(positions, device=x.device, reals=self.takes_reals)
        table = self.table(positions, dtype=working_dtype(x.dtype))  # type: ignore[arg-type]
        encoded = self.encode(x, table)
        return encoded if encoded.dtype is x.dtype else encoded.to(x.dtype)


class QueryKeyEncoding(Described, ABC):
    """Place two: a change of queries and keys inside attention.

    Queries and keys have separate methods, since keys have heads of their own and are cached. Both
    keep their shape; where heads become wider, ``encoded_dim`` tells the new width, and scores are
    scaled by the old one.

    Attributes:
        head_dim: Width of one head.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]`` (the default) or
            ``[*batch, seq, heads, head_dim]``.
        is_relative: Claim: q·k afterwards depends on positions by their difference alone.
        reads_rows: Whether ``encode_both`` is fast with rows of a kept table; otherwise the rows
            are better gathered once for all layers.
        changes_values: Whether ``encode_values`` does anything.
        changes_output: Whether ``encode_output`` does anything.
        takes_reals: Claim: ``Coordinates`` may be given as positions, and are as exact.
        keeps_neighbors_apart: Claim: two adjacent whole positions never have the same row.
    """

    head_dim: int
    heads_first: bool = True
    is_relative: bool = False
    reads_rows: bool = False
    changes_values: bool = False
    changes_output: bool = False
    takes_reals: bool = False
    keeps_neighbors_apart: bool = True

    @abstractmethod
    def table(self, positions: WholePlaces, *, dtype: Dtype = None) -> Float[Tensor, "..."]:
        """What ``positions`` alone say, one row a token; float32 unless ``dtype`` is given."""

    @property
    def encoded_dim(self) -> int:
        """Width of one head of encoded queries and keys."""
        return self.head_dim

    @abstractmethod
    def encode_queries(
        self, q: Float[Tensor, "*batch heads q_len head_dim"], table: Tensor
    ) -> Float[Tensor, "*batch heads q_len {self.encoded_dim}"]:
        """``q`` with its positions in it."""

    def encode_keys(
        self, k: Float[Tensor, "*batch kv_heads k_len head_dim"], table: Tensor
    ) -> Float[Tensor, "*batch kv_heads k_len {self.encoded_dim}"]:
        """``k`` with its positions in it; as queries where a class says nothing else."""
        return self.encode_queries(k, table)

    def encode_both(
        self, q: Heads, k: Heads, table: Tensor, positions: Int64[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "*batch _ _ _"], Float[Tensor, "*batch _ _ _"]]:
        """Both, of the same tokens; with ``positions``, by those rows of a kept ``table``."""
        if positions is not None:
            table = table[checked_rows(table, positions)]
        return self.encode_queries(q, table), self.encode_keys(k, table)

    def encode_values(
        self, v: Float[Tensor, "*batch kv_heads k_len value_dim"], table: Tensor
    ) -> Float[Tensor, "*batch kv_heads k_len value_dim"]:
        """``v`` changed by the table of the keys; called where ``changes_values`` is true."""
        return v

    def encode_output(self, out: Attended, table: Tensor) -> Attended:
        """The result of attention changed by the table of the queries; see ``changes_output``."""
        return out

    def forward(
        self, q: Heads, k: Heads, positions: Places | None = None
    ) -> tuple[Float[Tensor, "*batch _ _ _"], Float[Tensor, "*batch _ _ _"]]:
        """Both encoded by one table; without positions, the tokens stand at 0, 1, 2, …"""
        if positions is None:
            positions = consecutive(q.shape[-2 if self.heads_first else -3], device=q.device)
        else:
            positions = checked(positions, device=q.device, reals=self.takes_reals)
        table = self.table(positions, dtype=working_dtype(q.dtype))  # type: ignore[arg-type]
        encoded_q, encoded_k = self.encode_both(q, k, table)
        if encoded_q.dtype is q.dtype and encoded_k.dtype is k.dtype:
            return encoded_q, encoded_k
        return encoded_q.to(q.dtype), encoded_k.to(k.dtype)


class ScoreEncoding(Described, ABC):
    """Place three: a change of the attention scores, scaled but unmasked, before softmax.

    Attributes:
        heads: Number of query heads.
        is_relative: Claim: the change depends on positions by their difference alone.
        is_pairwise: Claim: the change of one score depends on its own query and key alone, not on
            the tokens between or beside them. Attention over parts of the keys needs that.
        reads_neighbors: Claim: the change reads tokens beside the key, and tells by positions that
            fall or repeat where a document ends or padding lies. Attention then needs to know
            padding and documents.
        reads_later: Claim: the change reads keys after the query, as a mean over all keys does.
            Such an encoding cannot be used with a cache.
        changes_output: Whether ``encode_output`` does anything.
        takes_reals: Claim: ``Coordinates`` may be given as positions, and are as exact.
        makes_anew: Whether it computes scores anew and loses what others made of them before;
            ``Positional`` wants it first among encodings of scores.
        has_profile: Whether it is a bias that ``profile(distance)`` tells in full.
        reads_hidden: Whether it reads the hidden state, from which queries and keys are projected.
            Then ``encode`` takes ``q_features=`` and ``k_features=``, which ``query_features`` and
            ``key_features`` read there; a cache keeps them as it keeps keys.
    """

    heads: int
    is_relative: bool = False
    is_pairwise: bool = False
    reads_neighbors: bool = False
    reads_later: bool = False
    changes_output: bool = False
    takes_reals: bool = False
    makes_anew: bool = False
    has_profile: bool = False
    reads_hidden: bool = False

    def check_beside(
        self, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
    ) -> None:
        """Raise ``ValueError`` beside encodings of queries and keys that this one does not fit."""
        for part in self.modules():
            if part is not self and isinstance(part, ScoreEncoding):
                part.check_beside(queries_keys, rotated_before=rotated_before)

    @abstractmethod
    def table(
        self, q_positions: WholePlaces, k_positions: WholePlaces, *, dtype: Dtype = None
    ) -> Tensor:
        """What the two sets of positions alone say; points of a grid have one more axis."""

    @abstractmethod
    def encode(
        self, scores: Scores, table: Tensor, *, q: Q = None, k: K = None, scale: Scale = None
    ) -> Scores:
        """``scores``, scaled by ``scale`` or 1/√head_dim, changed by position and rounded once."""

    def encode_output(self, out: Attended, weights: Scores, table: Tensor) -> Attended:
        """The result of attention, with what positions add to values; see ``changes_output``."""
        return out

    def query_features(
        self, hidden: Float[Tensor, "*batch q_len dim"]
    ) -> Float[Tensor, "*batch q_len _"] | None:
        """What it reads in the hidden state of each query; most read nothing."""
        return None

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len _"] | None:
        """What it reads in the hidden state of each key; most read nothing."""
        return None

    def forward(
        self,
        scores: Scores,
        q_positions: Places | None = None,
        k_positions: Places | None = None,
        *,
        q: Q = None,
        k: K = None,
        scale: Scale = None,
        q_hidden: Float[Tensor, "*batch q_len dim"] | None = None,
        k_hidden: Float[Tensor, "*batch k_len dim"] | None = None,
    ) -> Scores:
        """``encode`` of ``table``; without positions, both sides stand at 0, 1, 2, …"""
        positions = [q_positions, k_positions]
        for side, (axis, name) in enumerate(((-2, "q_positions"), (-1, "k_positions"))):
            given, device = positions[side], scores.device
            if given is None:
                given = consecutive(scores.shape[axis], device=device)
            positions[side] = checked(given, name, device=device, reals=self.takes_reals)
        table = self.table(*positions, dtype=working_dtype(scores.dtype))  # type: ignore[arg-type]
        features = {}
        if self.reads_hidden:
            features = {
                "q_features": None if q_hidden is None else self.query_features(q_hidden),
                "k_features": None if k_hidden is None else self.key_features(k_hidden),
            }
        return self.encode(scores, table, q=q, k=k, scale=scale, **features).to(scores.dtype)

    def extra_repr(self) -> str:
        return arguments_told(self, named=True)
