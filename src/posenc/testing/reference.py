"""Attention by its definition, dense and in float64: what every backend must equal.

It shares no code with the backends, and is slow.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import sqrt
from typing import cast

import torch
from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional

Visible = Callable[[int, int, int], bool]
"""(row of the batch, index of the query, index of the key) → whether the query may see the key."""


def reference_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    positional: Positional | None = None,
    q_positions: Tensor,
    k_positions: Tensor,
    visible: Visible | None = None,
    added: Tensor | None = None,
    scale: float | None = None,
    sinks: Tensor | None = None,
    softcap: float | None = None,
    keys_encoded: bool = False,
    q_hidden: Tensor | None = None,
    k_hidden: Tensor | None = None,
) -> Tensor:
    """softmax(what positions make of encode(query) · encode(key) · scale) value, in float64.

    Args:
        query: ``[batch, heads, q_len, head_dim]``.
        key: ``[batch, kv_heads, k_len, head_dim]``.
        value: ``[batch, kv_heads, k_len, value_dim]``.
        positional: Encodings of queries, keys and scores. Those of tokens act before attention, and
            are not applied here.
        q_positions: ``[q_len]``, ``[batch, q_len]`` or a grid.
        k_positions: ``[k_len]``, ``[batch, k_len]`` or a grid.
        visible: Which pairs may meet; all if not given.
        added: A number for each score, broadcast to ``[batch, heads, q_len, k_len]``.
        scale: What products are multiplied with; 1/√head_dim if not given.
        sinks: ``[heads]``: a score that takes its share of each row and gives no value.
        softcap: c in c · tanh(score / c), before encodings of scores.
        keys_encoded: Whether ``key`` and ``value`` are encoded already.
        q_hidden: The hidden state of the queries, for encodings that read it.
        k_hidden: That of the keys.

    Example:
        >>> x, here = torch.randn(1, 2, 3, 4), torch.arange(3)
        >>> causal = reference_attention(x, x, x, q_positions=here, k_positions=here,
        ...                              visible=lambda row, q, k: k <= q)
        >>> torch.allclose(causal[:, :, 0], x[:, :, 0].double())
        True
    """
    positional = Positional() if positional is None else positional
    if positional.remaps:
        raise ValueError(f"{positional.positions} may draw other positions at each call.")
    if sinks is not None:  # beside ∞ − ∞ a row would be NaN; the limit is a sink that takes all
        sinks = sinks.clamp(max=torch.finfo(sinks.dtype).max)
    query, key, value = query.double(), key.double(), value.double()
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    after: list[Callable[..., Tensor]] = []
    for encoding in cast("Sequence[QueryKeyEncoding]", positional.queries_keys):
        table = encoding.table(q_positions, dtype=torch.float64)
        query = encoding.encode_queries(query, table)
        after.insert(0, lambda out, _, e=encoding, t=table: e.encode_output(out, t))
        if not keys_encoded:
            table = encoding.table(k_positions, dtype=torch.float64)
            key, value = encoding.encode_keys(key, table), encoding.encode_values(value, table)
    group = query.shape[1] // key.shape[1]
    keys, values = (x.repeat_interleave(group, dim=1) for x in (key, value))
    scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    of_scores: list[Callable[..., Tensor]] = []
    for encoding in cast("Sequence[ScoreEncoding]", positional.scores):
        table = encoding.table(q_positions, k_positions, dtype=torch.float64)
        features = {}
        if encoding.reads_hidden:
            features["q_features"] = encoding.query_features(cast(Tensor, q_hidden).double())
            features["k_features"] = encoding.key_features(cast(Tensor, k_hidden).double())
        scores = encoding.encode(scores, table, q=query, k=key, scale=scale, **features)
        of_scores.append(lambda out, w, e=encoding, t=table: e.encode_output(out, w, t))
    if added is not None:
        scores = scores + added.double().expand_as(scores)
    weights = _softmax(scores, visible, sinks)
    out = torch.einsum("bhqk,bhkd->bhqd", weights, values)
    for change in (*of_scores, *after):
        out = change(out, weights)
    return out


def _softmax(scores: Tensor, visible: Visible | None, sinks: Tensor | None) -> Tensor:
    """Softmax over visible scores and the sink; zero where nothing is visible."""
    batch, _, q_len, k_len = scores.shape
    if visible is not None:
        places = product(range(batch), range(q_len), range(k_len))
        shown = torch.tensor([visible(*place) for place in places], dtype=torch.bool)
        shown = shown.view(batch, 1, q_len, k_len).to(scores.device)
        scores = scores.masked_fill(~shown, -torch.inf)
    sink = scores.new_full((1,), -torch.inf) if sinks is None else sinks.double()
    sink = sink.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
    scores = torch.cat((scores, sink), dim=-1)
    nothing = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)[..., :-1]
