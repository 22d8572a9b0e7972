"""DeBERTa: content meets position, and position content, each by products of their own."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_choice, check_whole
from posenc.encodings.scores.content import Content, OfContent, picked, trained_rows, warn_untrained
from posenc.encodings.shapes import Device, Distances, Dtype, Scores, WholeKeyRow, WholeQueryRow
from posenc.encodings.told import Drawn
from posenc.numerics.buckets import between_deberta_ends, deberta_ends
from posenc.numerics.product import products
from posenc.positions import checked_distances

Term = Literal["c2p", "p2c"]
Far = Literal["authors", "transformers"]


class DeBERTa(Drawn, OfContent):
    """score(q, k) = ( q·k + q · K[δ] + k · Q[δ] ) · scale / √(1 + terms),  δ = bucket(q − k)

    with scale = 1/√head_dim, which scores already have. K and Q are the keys and queries of the
    relative positions of each head, already projected; ``load`` makes them from a checkpoint.

    Args:
        buckets: Number of buckets to one side: exact up to half of it, logarithmic beyond. 0 keeps
            every distance up to ``max_distance`` exact (DeBERTa 1).
        max_distance: Distance of the last bucket.
        terms: ``"c2p"`` (content to position), ``"p2c"`` (position to content), or both.
        far: ``"authors"`` cuts distances off at ±(max_distance − 1). ``"transformers"`` goes one
            bucket further for keys after their query, which no text of that length reaches.
        trained_length: If given, a ``UserWarning`` tells of a distance in a bucket that no sequence
            of this length reaches.

    Reference:
        He et al. 2021, "DeBERTa", equations 2 to 4 (arXiv:2006.03654); buckets as in version 2 and
        3, ``DeBERTa/deberta/da_utils.py``.

    Example:
        >>> deberta, x = DeBERTa(heads=2, head_dim=8), torch.randn(1, 2, 5, 8)
        >>> deberta(x @ x.mT / 8**0.5, q=x, k=x).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = is_pairwise = True

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
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, max_distance=max_distance)
        check_whole(0, buckets=buckets)
        check_choice(get_args(Far), far=far)
        check_choice(get_args(Term), **{f"terms[{n}]": term for n, term in enumerate(terms)})
        self.heads, self.head_dim, self.std = heads, head_dim, std
        self.buckets, self.max_distance = buckets, max_distance
        self.span = buckets or max_distance
        self.ends = deberta_ends(buckets, max_distance) if buckets else ()
        self.terms = tuple(dict.fromkeys(terms))
        self.far: Far = far
        self.trained_length = trained_length
        self.trained = trained_rows(self._rows, trained_length)
        shape, factory = (heads, 2 * self.span, head_dim), {"device": device, "dtype": dtype}
        self.position_keys = self.position_queries = None
        if "c2p" in terms:
            self.position_keys = nn.Parameter(torch.empty(shape, **factory))
        if "p2c" in terms:
            self.position_queries = nn.Parameter(torch.empty(shape, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def load(
        self,
        embeddings: Float[Tensor, "rows dim"],
        *,
        keys: nn.Linear | None = None,
        queries: nn.Linear | None = None,
    ) -> None:
        """Load a checkpoint: its relative embeddings (after their norm) and projections.

        With ``share_att_key`` (version 2 and 3) these are ``key_proj`` and ``query_proj``,
        otherwise ``pos_key_proj`` and ``pos_query_proj``; each is needed where its term is.
        """
        both = ((self.position_keys, keys), (self.position_queries, queries))
        for vectors, projection in both:
            if vectors is not None:
                rows = projection(embeddings)  # type: ignore[misc]
                vectors.copy_(rows.unflatten(-1, (self.heads, self.head_dim)).transpose(0, 1))

    def table(
        self, q_positions: WholeQueryRow, k_positions: WholeKeyRow, *, dtype: Dtype = None
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """Which vector each pair meets, int64 whatever ``dtype`` is."""
        rows = self._rows(checked_distances(q_positions, k_positions))
        warn_untrained(rows, self.trained, self.trained_length)
        return rows

    def _rows(self, distance: Tensor) -> Tensor:
        if self.buckets:
            if self.far == "authors":
                distance = distance.clamp(1 - self.max_distance, self.max_distance - 1)
            distance = between_deberta_ends(distance, self.ends)
        return (distance.clamp(-self.span, self.span) + self.span).clamp(max=2 * self.span - 1)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        added = scores.new_zeros(())
        if self.position_keys is not None:
            added = added + picked(products(content.q, self.position_keys), table)
        if self.position_queries is not None:
            added = added + picked(products(content.keys, self.position_queries), table.mT).mT
        return (scores + added * content.scale) / sqrt(1 + len(self.terms))
