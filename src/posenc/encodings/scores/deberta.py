"""DeBERTa: content meets position, and position content, each by products of their own."""

import warnings
from collections.abc import Sequence
from math import sqrt
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_choice, check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.content import checked_content, products, scale_of
from posenc.encodings.scores.picked import grouped_keys, picked
from posenc.guards import may_look
from posenc.numerics.buckets import between_deberta_ends, deberta_ends
from posenc.positions import Integers, checked_distances

Term = Literal["c2p", "p2c"]
Far = Literal["authors", "transformers"]


class DeBERTa(ScoreEncoding):
    """score(q, k) = ( q·k + q · K[δ] + k · Q[δ] ) · scale / √(1 + terms),  δ = bucket(q − k)

    with scale = 1/√head_dim, which scores already have. K and Q are
    the relative positions' keys and queries of each head, already projected; ``load`` makes them
    from a checkpoint's relative embeddings and projections.

    With buckets, authors and transformers differ from ``max_distance`` on: the authors cut
    distances off at ±(max_distance − 1), so that every bucket is one that was trained; transformers
    goes one bucket further for keys after their query, to a row that no text of that length ever
    reached.

    Args:
        heads: Number of query heads.
        head_dim: Width of a head.
        buckets: Number of buckets to one side: exact up to half of it, logarithmic beyond. 0 keeps
            every distance up to ``max_distance`` exact (DeBERTa 1).
        max_distance: Distance of the last bucket.
        terms: ``"c2p"`` (content to position), ``"p2c"`` (position to content), or both.
        far: Whose rule holds from ``max_distance`` on, ``"authors"`` or ``"transformers"``.
        trained_length: If given, a warning says when a distance falls into a bucket that no
            sequence of this length ever reached.
        std: Standard deviation of the normal initialization.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number does not fit, a term or rule has no such name, or content was not
            given.

    Warns:
        UserWarning: A distance meets a bucket that was never trained (not inside a graph).

    Reference:
        He et al. 2021, "DeBERTa", equations 2 to 4 (arXiv:2006.03654); logarithmic buckets as in
        the authors' code of version 2 and 3, ``DeBERTa/deberta/da_utils.py``.

    Example:
        >>> deberta, x = DeBERTa(heads=2, head_dim=8), torch.randn(1, 2, 5, 8)
        >>> deberta(x @ x.mT / 8**0.5, q=x, k=x).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = True
    is_pairwise = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        buckets: int = 256,
        max_distance: int = 512,
        *,
        terms: Sequence[Term] = ("c2p", "p2c"),
        far: Far = "authors",
        trained_length: int | None = None,
        std: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, max_distance=max_distance)
        check_whole(0, buckets=buckets)
        check_number(0.0, std=std)
        check_choice(get_args(Far), far=far)
        if trained_length is not None:
            check_whole(trained_length=trained_length)
        known = isinstance(terms, Sequence) and all(term in get_args(Term) for term in terms)
        if not known or not terms or isinstance(terms, str):
            raise ValueError(f"terms is {terms!r}; give ('c2p',), ('p2c',), or both.")
        self.heads, self.head_dim, self.std = heads, head_dim, std
        self.buckets, self.max_distance = buckets, max_distance
        self.span = buckets or max_distance
        self.ends = deberta_ends(buckets, max_distance) if buckets else ()
        self.terms = tuple(dict.fromkeys(terms))
        self.far: Far = far
        self.trained_length = trained_length
        self.trained = self._trained()
        shape, factory = (heads, 2 * self.span, head_dim), {"device": device, "dtype": dtype}
        self.position_keys = self.position_queries = None
        if "c2p" in terms:
            self.position_keys = nn.Parameter(torch.empty(shape, **factory))
        if "p2c" in terms:
            self.position_queries = nn.Parameter(torch.empty(shape, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, std²)."""
        for vectors in self.parameters():
            nn.init.normal_(vectors, std=self.std)

    @torch.no_grad()
    def load(
        self,
        embeddings: Float[Tensor, "rows dim"],
        *,
        keys: nn.Linear | None = None,
        queries: nn.Linear | None = None,
    ) -> None:
        """Take over a checkpoint: its relative embeddings (after their norm) and projections.

        With ``share_att_key`` (version 2 and 3) these are the projections of content:
        ``key_proj`` and ``query_proj``; otherwise ``pos_key_proj`` and ``pos_query_proj``.

        Raises:
            ValueError: A projection is missing, or the embeddings are of another span.
        """
        if len(embeddings) != 2 * self.span:
            raise ValueError(
                f"There are {len(embeddings)} embeddings; DeBERTa with span {self.span} needs "
                f"{2 * self.span}. Build it with the buckets of the checkpoint, or without any and "
                f"with its max_distance."
            )
        for vectors, projection, name in (
            (self.position_keys, keys, "keys"),
            (self.position_queries, queries, "queries"),
        ):
            if vectors is None:
                continue
            if projection is None:
                raise ValueError(f"terms are {self.terms}; pass {name}=, the projection for it.")
            rows = projection(embeddings)
            vectors.copy_(rows.unflatten(-1, (self.heads, self.head_dim)).transpose(0, 1))

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """Which vector each pair meets, whole numbers whatever ``dtype``."""
        rows = self._rows(checked_distances(q_positions, k_positions))
        self._warn(rows)
        return rows

    def _rows(self, distance: Tensor) -> Tensor:
        if self.buckets:
            if self.far == "authors":
                distance = distance.clamp(1 - self.max_distance, self.max_distance - 1)
            distance = between_deberta_ends(distance, self.ends)
        return (distance.clamp(-self.span, self.span) + self.span).clamp(max=2 * self.span - 1)

    def _trained(self) -> tuple[int, int]:
        """The first and the last row that a pair of tokens reaches in ``trained_length`` tokens."""
        if self.trained_length is None:
            return 0, 2 * self.span - 1
        reach = self.trained_length - 1
        first, last = self._rows(torch.tensor([-reach, reach], device="cpu")).tolist()
        return first, last

    def _warn(self, rows: Tensor) -> None:
        first, last = self.trained
        whole = self.trained == (0, 2 * self.span - 1)
        if whole or not may_look(rows) or not rows.numel():
            return
        if rows.amin() < first or rows.amax() > last:
            # The same words each time, so that the interpreter shows them once.
            warnings.warn(
                f"A distance meets a bucket that was never trained: in trained_length "
                f"{self.trained_length} tokens rows {first} … {last} are reached, the others hold "
                f"random numbers. Fine-tune on longer sequences, or cut the distance.",
                stacklevel=3,
            )

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """All terms, added in float32 at least and rounded once."""
        width = self.head_dim
        checked_content("DeBERTa", self.heads, scores, q=(q, width), k=(k, width))
        assert q is not None
        assert k is not None
        wide = working_dtype(scores.dtype)
        added = torch.zeros((), dtype=wide, device=scores.device)
        if self.position_keys is not None:
            added = added + picked(products(q.to(wide), self.position_keys), table)
        if self.position_queries is not None:
            keys = grouped_keys(k.to(wide), self.heads)
            added = added + picked(products(keys, self.position_queries), table.mT).mT
        added = added * scale_of(scale, width)
        return ((scores + added) / sqrt(1 + len(self.terms))).to(scores.dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"heads={self.heads}, head_dim={self.head_dim}, buckets={self.buckets}, "
            f"max_distance={self.max_distance}, terms={self.terms}"
            f"{'' if self.far == 'authors' else f', far={self.far!r}'}"
        )
