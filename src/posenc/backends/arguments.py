"""The arguments of ``attention``, read in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from posenc.backends.base import Sharded
from posenc.backends.specification import AttentionSpecification, known
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional, check_positional
from posenc.guards import may_look
from posenc.positions import Coordinates, checked, common_scale, over_padding, runs

LAYOUT = "[batch, heads, seq, head_dim]"


@dataclass(eq=False)
class Arguments:
    """What ``attention`` was given."""

    query: Tensor
    key: Tensor
    value: Tensor
    queries_keys: Sequence[QueryKeyEncoding]
    scores: Sequence[ScoreEncoding]
    remaps: bool
    specification: AttentionSpecification
    scale: float
    dropout_p: float
    q_hidden: Tensor | None
    k_hidden: Tensor | None
    likely_real: Tensor | None  # [batch, q_len], if the queries are the last of the keys' tokens

    @property
    def has_padding(self) -> bool:
        """Whether there is padding, said or likely."""
        spec = self.specification
        return spec.padding_mask is not None or spec.q_padding_mask is not None

    def without_padding(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values with zeros in padding: weight 0 times a NaN would be NaN."""
        query, key, value = self.query, self.key, self.value
        query = self._queries_without_padding(query, (1, -1))
        padding = self.specification.padding_mask
        if padding is not None:
            hidden = ~padding[:, None, :, None]
            key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
        return query, key, value

    def hidden_without_padding(self) -> tuple[Tensor | None, Tensor | None]:
        """The hidden states of queries and of keys with zeros where they are padding."""
        q_hidden, k_hidden = self.q_hidden, self.k_hidden
        if q_hidden is not None:
            q_hidden = self._queries_without_padding(q_hidden, (-1,))
        padding = self.specification.padding_mask
        if k_hidden is not None and padding is not None:
            k_hidden = k_hidden.masked_fill(~padding.unsqueeze(-1), 0.0)
        return q_hidden, k_hidden

    def _queries_without_padding(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """What queries have, with zeros in padding; of what may be padding, numbers are kept."""
        real, otherwise = self.specification.q_padding_mask, 0.0
        if real is None:
            if self.likely_real is None:
                return x
            real, otherwise = self.likely_real, x.nan_to_num(0.0, 0.0, 0.0)
        for axis in axes:
            real = real.unsqueeze(axis)
        return x.where(real, otherwise)


def read_arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool | None = None,
    positional: Positional | None = None,
    q_positions: Any = None,
    k_positions: Any = None,
    padding_mask: Tensor | None = None,
    q_padding_mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    q_document_ids: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    window: int | None = None,
    sinks: Tensor | None = None,
    softcap: float | None = None,
    keys_encoded: bool = False,
    q_hidden: Tensor | None = None,
    k_hidden: Tensor | None = None,
    shards: Sharded | None = None,
) -> Arguments:
    """The arguments of ``attention``; see there."""
    queries_keys: Sequence[QueryKeyEncoding] = ()
    scores: Sequence[ScoreEncoding] = ()
    remaps = False
    if positional is not None:
        if type(positional) is not Positional:
            check_positional(positional)
        queries_keys, scores = tuple(positional.queries_keys), tuple(positional.scores)  # type: ignore[assignment]
        remaps = bool(positional.positions) and positional.remaps
    _check_shapes(query, key, value, queries_keys if keys_encoded else (), enable_gqa)
    batch, q_len, k_len, device = query.shape[0], query.shape[-2], key.shape[-2], query.device
    if q_positions is not None or k_positions is not None:
        q_positions, k_positions = _checked_positions(query, key, q_positions, k_positions)
    if cu_seqlens is not None:
        ends = checked(cu_seqlens, "cu_seqlens")[1:].contiguous()
        document_ids = torch.bucketize(torch.arange(k_len, device=device), ends, right=True)
    last, documents, q_documents, likely_real = False, None, None, None
    if padding_mask is not None or document_ids is not None or remaps:
        cut = shards is not None and shards.cuts_keys_alone
        last = not cut and _queries_are_last(q_len, k_len, q_positions, k_positions)
    if document_ids is not None:
        documents = checked(document_ids, "document_ids").expand(batch, k_len)
        if q_document_ids is not None:
            q_documents = checked(q_document_ids, "q_document_ids").expand(batch, q_len)
        elif last:
            documents = runs(documents)
            q_documents = documents[:, k_len - q_len :]
        else:
            raise ValueError(
                f"document_ids were given for {k_len} keys, and the {q_len} queries are not known "
                f"to be the last of these tokens; pass q_document_ids."
            )
    if padding_mask is not None:
        padding_mask = padding_mask.expand(batch, k_len)
        if q_padding_mask is None and last:
            likely_real = padding_mask[:, k_len - q_len :]
    q_remapped = None
    if remaps:
        if not last or not known(q_len == k_len):
            raise ValueError(
                "positional changes positions, and the queries are not the keys, so that both "
                "would be drawn apart; pass positions that are changed already."
            )
        assert positional is not None
        here = torch.arange(k_len, device=device) if k_positions is None else k_positions
        q_remapped = positional.remapped(here)
    if sinks is not None:  # beside ∞ − ∞ a row would be NaN; the limit is a sink that takes all
        sinks = sinks.clamp(max=min(torch.finfo(sinks.dtype).max, torch.finfo(query.dtype).max))
    specification = AttentionSpecification(
        batch=batch,
        q_len=q_len,
        k_len=k_len,
        q_positions=q_positions,
        k_positions=k_positions,
        q_remapped=q_remapped,
        k_remapped=q_remapped,
        is_causal=is_causal,
        window=window,
        padding_mask=padding_mask,
        q_padding_mask=q_padding_mask,
        documents=documents,
        q_documents=q_documents,
        attn_mask=None if attn_mask is None else checked_attn_mask(attn_mask, query, key),
        sinks=sinks,
        softcap=softcap,
        device=device,
    )
    if padding_mask is not None and scores:
        specification = counting_real_keys(specification, scores)
    if (q_hidden is not None or k_hidden is not None) and not any(e.reads_hidden for e in scores):
        raise ValueError("A hidden state was given, and no encoding of scores here reads it.")
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    return Arguments(
        query, key, value, queries_keys, scores, remaps, specification, scale, dropout_p, q_hidden,
        k_hidden, likely_real,
    )  # fmt: skip


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    encoded_by: Sequence[QueryKeyEncoding],
    enable_gqa: bool | None,
) -> None:
    """Refuse shapes that kernels would read past, or of which some heads would have no keys."""
    if query.ndim == key.ndim == value.ndim == 4:
        width, heads, kv_heads = query.shape[3], query.shape[1], key.shape[1]
        for encoding in encoded_by:
            width = encoding.encoded_dim
        grouped = heads == kv_heads if enable_gqa is False else kv_heads and heads % kv_heads == 0
        alike = query.shape[0] == key.shape[0] and key.shape[:3] == value.shape[:3]
        if grouped and alike and key.shape[3] == width:
            return
    raise ValueError(
        f"query, key and value have shapes {tuple(query.shape)}, {tuple(key.shape)} and "
        f"{tuple(value.shape)}; attention takes {LAYOUT}, where batch and width are alike and "
        f"key heads divide those of the queries."
    )


def _checked_positions(
    query: Tensor, key: Tensor, q_positions: Any, k_positions: Any
) -> tuple[Tensor | Coordinates, Tensor | Coordinates]:
    """Integers or coordinates of one scale, one for each query and each key."""
    if q_positions is None or k_positions is None:
        raise ValueError("Positions were given for one side alone; pass q_positions, k_positions.")
    same, device = q_positions is k_positions, query.device
    queries = checked(q_positions, "q_positions", device=device, reals=True)
    keys = queries if same else checked(k_positions, "k_positions", device=device, reals=True)
    if not same and (isinstance(queries, Coordinates) or isinstance(keys, Coordinates)):
        queries, keys = common_scale(Coordinates(queries), Coordinates(keys))
    for name, positions, x in (("q_positions", queries, query), ("k_positions", keys, key)):
        shape, batch, seq = tuple(positions.shape), x.shape[0], x.shape[-2]
        if shape != (seq,) and not (
            len(shape) in (2, 3) and shape[0] in (1, batch) and shape[1] == seq
        ):
            raise ValueError(
                f"{name} have shape {shape}; there are {batch} rows of {seq} tokens, read as "
                f"{LAYOUT}, so they must be [{seq}], [{batch}, {seq}] or [{batch}, {seq}, axes]."
            )
    return queries, keys


def _queries_are_last(
    q_len: int,
    k_len: int,
    queries: Tensor | Coordinates | None,
    keys: Tensor | Coordinates | None,
) -> bool:
    """Whether the queries are known to be the last of the keys' tokens."""
    if queries is None or keys is None:
        return known(q_len <= k_len)
    if queries is keys:
        return True
    if not known(q_len == k_len) or queries.shape != keys.shape:
        return False
    values = (each.values if isinstance(each, Coordinates) else each for each in (queries, keys))
    equal = all(map(may_look, values)) and queries == keys
    return isinstance(equal, Tensor) and bool(equal.all())


def counting_real_keys(
    specification: AttentionSpecification, scores: Sequence[ScoreEncoding]
) -> AttentionSpecification:
    """The same with keys at positions where encodings that count tokens leave padding out."""
    keys, padding = specification.keys, specification.padding_mask
    pairwise = all(encoding.is_pairwise for encoding in scores)
    if padding is None or pairwise or isinstance(keys, Coordinates) or keys.ndim > 2:
        return specification
    return replace(specification, k_remapped=over_padding(keys, padding))


def checked_attn_mask(attn_mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Boolean or of float32 at least, with four axes."""
    if attn_mask.dtype != torch.bool:
        if not attn_mask.is_floating_point():
            raise TypeError(f"attn_mask is {attn_mask.dtype}; it must be boolean or floating.")
        attn_mask = attn_mask.to(torch.promote_types(query.dtype, torch.float32))
    four = attn_mask[(None,) * (4 - attn_mask.ndim)]
    return four.expand(-1, -1, query.shape[-2], key.shape[-2])
