"""Multi-head attention, with encodings of queries, keys and scores where they belong."""

from dataclasses import dataclass
from math import sqrt

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.backends.arguments import checked_attn_mask
from posenc.backends.choice import check_heads, from_tables
from posenc.backends.explicit import Features, attend_explicitly, read, reading
from posenc.backends.masks import joined, with_causal, within
from posenc.backends.neighbors import check_mask_tells_nothing
from posenc.backends.sdpa import TORCHS_ATTENTION, refuse_context_parallel
from posenc.transformer.cache import LayerCache
from posenc.transformer.tables import AttentionTables

NOTHING = AttentionTables()


@dataclass(frozen=True)
class AttentionStages:
    """Every number of one attention.

    Attributes:
        queries: ``[batch, heads, seq, head_dim]``, after the split into heads.
        keys: ``[batch, kv_heads, seq, head_dim]``, likewise.
        values: ``[batch, kv_heads, seq, head_dim]``, likewise, before any encoding changes them.
        encoded_queries: Queries with their positions in them.
        encoded_keys: Keys with their positions in them.
        scores: ``[batch, heads, seq, seq]``: queries · keys · scale.
        encoded_scores: Scores with positions in them, and −∞ where masked.
        weights: The softmax of each row of these; a row that may see nothing is zero.
        heads: ``[batch, heads, seq, head_dim]``: weights · values, and what encodings change there.
        joined: ``[batch, seq, heads · head_dim]``: the heads side by side.
        output: ``[batch, seq, dim]``.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    encoded_queries: Tensor
    encoded_keys: Tensor
    scores: Tensor
    encoded_scores: Tensor
    weights: Tensor
    heads: Tensor
    joined: Tensor
    output: Tensor


class MultiHeadAttention(nn.Module):
    """Each token gathers the values of the tokens whose keys its query meets, in several heads.

    softmax(Q Kᵀ · scale + what positions say) V,  scale = 1/√head_dim

    Encodings come with their tables from the caller, who computes them once for all layers.

    Args:
        dim: Width of a token.
        heads: Number of query heads.
        kv_heads: Number of key and value heads, fewer for grouped-query attention; ``heads`` if
            not given.
        head_dim: Width of a head; ``dim / heads`` if not given.
        bias: Whether the four linear maps have one.
        dropout: Probability of dropping an attention weight while training.
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given.
        window: How many tokens of the row a token sees to each side, itself among them; all if not
            given. An encoder counts positions instead.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", section 3.2 (arXiv:1706.03762); Ainslie
        et al. 2023, "GQA", section 2.2 (arXiv:2305.13245).

    Example:
        >>> import torch
        >>> attention = MultiHeadAttention(16, heads=4, kv_heads=2)
        >>> x = torch.randn(1, 6, 16)
        >>> attention(x, is_causal=True).shape
        torch.Size([1, 6, 16])
        >>> attention.stages(x).weights.shape
        torch.Size([1, 4, 6, 6])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        window: int | None = None,
    ):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        check_whole(dim=dim, heads=heads, kv_heads=kv_heads)
        if head_dim is not None:
            check_whole(head_dim=head_dim)
        if head_dim is None and dim % heads:
            raise ValueError(f"dim is {dim}, which {heads} heads cannot share evenly.")
        if heads % kv_heads:
            raise ValueError(f"heads is {heads}, which {kv_heads} kv_heads cannot serve evenly.")
        self.dim, self.heads, self.kv_heads = dim, heads, kv_heads
        self.head_dim = dim // heads if head_dim is None else head_dim
        self.scale = 1 / sqrt(self.head_dim) if scale is None else scale
        self.dropout, self.window = dropout, window
        self.queries = nn.Linear(dim, heads * self.head_dim, bias=bias)
        self.keys = nn.Linear(dim, kv_heads * self.head_dim, bias=bias)
        self.values = nn.Linear(dim, kv_heads * self.head_dim, bias=bias)
        self.output = nn.Linear(heads * self.head_dim, dim, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch seq dim"],
        *,
        tables: AttentionTables | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "batch seq dim"]:
        """Attention of the tokens of ``x`` among themselves and to those in the cache.

        Args:
            x: Tokens.
            tables: Encodings of queries, keys and scores, each with its table for these tokens
                (score tables for the cached keys too). With a backend among them, ``attn_mask``
                and ``is_causal`` are not read: it holds masks, order and scores.
            attn_mask: Broadcastable to ``[batch, heads, q_len, k_len]``. Boolean: true where a
                query may see a key. Floating: a number to add to the scores, −∞ to hide. Not
                beside encodings that read the tokens before each, or sum over those between
                (``is_pairwise`` is false): it does not tell them which keys count.
            is_causal: A token sees itself and those before it.
            cache: Keys and values of earlier tokens; those of ``x`` are appended.
        """
        if F.scaled_dot_product_attention is not TORCHS_ATTENTION:
            refuse_context_parallel()
        tables = NOTHING if tables is None else tables
        q, k, v = encoded(*self.project(x), tables)
        if cache is not None:
            k, v = cache.append(k, v)
        backend = tables.backend
        if backend is None:
            attn_mask, is_causal = self._masked(attn_mask, is_causal, q, k, tables)
            backend = from_tables(tables.scores, attn_mask, is_causal, q, k)
        if tables.readers:
            backend = reading(backend, read_by_all(x, tables, cache))
        dropout_p = self.dropout if self.training else 0.0
        heads = backend(q, k, v, scale=self.scale, dropout_p=dropout_p)
        return self.output(encoded_output(heads, tables).transpose(1, 2).flatten(-2))

    def stages(
        self,
        x: Float[Tensor, "batch seq dim"],
        *,
        tables: AttentionTables | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
        told: bool = False,
    ) -> AttentionStages:
        """The same attention with every number between, for one whole sequence; without a backend.

        ``told`` says that encodings which go by the tokens know of what ``attn_mask`` hides, by
        the positions of their tables; then they take it.
        """
        tables = NOTHING if tables is None else tables
        q, k, v = self.project(x)
        encoded_q, encoded_k, encoded_v = encoded(q, k, v, tables)
        attn_mask, is_causal = self._masked(attn_mask, is_causal, q, k, tables, told=told)
        mask = with_causal(attn_mask, is_causal, q.shape[-2], k.shape[-2], q.device)
        made = attend_explicitly(
            encoded_q, encoded_k, encoded_v, tables.scores, mask, scale=self.scale,
            dropout_p=self.dropout if self.training else 0.0,
            features=read_by_all(x, tables, None),
        )  # fmt: skip
        heads = encoded_output(made.heads, tables)
        joined = heads.transpose(1, 2).flatten(-2)
        return AttentionStages(
            q, k, v, encoded_q, encoded_k, *made[:3], heads, joined, self.output(joined)
        )

    def _masked(
        self,
        mask: Tensor | None,
        is_causal: bool,
        q: Tensor,
        k: Tensor,
        tables: AttentionTables,
        *,
        told: bool = False,
    ) -> tuple[Tensor | None, bool]:
        """The mask with the window in it; and with order too, where a flag would not do."""
        scores, q_len, k_len = [each for each, _ in tables.scores], q.shape[-2], k.shape[-2]
        check_heads(scores, self.heads)
        mask = None if mask is None else checked_attn_mask(mask, q, k)
        if not told:
            check_mask_tells_nothing(scores, mask)
        if self.window is not None:
            mask = joined(mask, within(self.window, q_len, k_len, device=q.device))
        # SDPA's own causal flag lines the first query up with the first key, not the last with the
        # last; and a single query at the end may see everything.
        if not is_causal or q_len == 1:
            return mask, False
        if q_len == k_len:
            return mask, True
        return with_causal(mask, True, q_len, k_len, q.device), False

    def project(self, x: Float[Tensor, "batch seq dim"]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of ``x``, split into heads."""
        rows = x.shape[:2]
        return (
            self.queries(x).reshape(*rows, self.heads, -1).transpose(1, 2),
            self.keys(x).reshape(*rows, self.kv_heads, -1).transpose(1, 2),
            self.values(x).reshape(*rows, self.kv_heads, -1).transpose(1, 2),
        )

    def keep_one_of(self, parts: int) -> None:
        """Take the linear maps for those of one of so many equal parts of the heads."""
        self.heads, self.kv_heads = self.heads // parts, self.kv_heads // parts

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.dim}, heads={self.heads}, kv_heads={self.kv_heads}"


def encoded(
    q: Tensor, k: Tensor, v: Tensor, tables: AttentionTables
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values with their positions in them, in the dtype that they had."""
    dtype = v.dtype
    for encoding, table in tables.queries_keys:
        q, k = encoding.encode_both(q, k, table, tables.positions)
        if encoding.changes_values:
            v = encoding.encode_values(v, tables.rows_of(table))
        if q.dtype != dtype or k.dtype != dtype or v.dtype != dtype:
            q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    return q, k, v


def encoded_output(heads: Tensor, tables: AttentionTables) -> Tensor:
    """What attention gives, with what encodings of queries and keys do to it."""
    dtype = heads.dtype
    for encoding, table in reversed(tables.queries_keys):
        if encoding.changes_output:
            heads = encoding.encode_output(heads, tables.rows_of(table)).to(dtype)
    return heads


def read_by_all(x: Tensor, tables: AttentionTables, cache: LayerCache | None) -> Features:
    """What encodings of scores read in ``x``, and, of keys, in what came before it."""
    features = read(tables.readers, x, x)
    if cache is None:
        return features
    of_keys = [each.keys for each in features.values() if each.keys is not None]
    kept = iter(cache.append_features(of_keys) if of_keys else ())
    return {
        encoding: each if each.keys is None else each._replace(keys=next(kept))
        for encoding, each in features.items()
    }
