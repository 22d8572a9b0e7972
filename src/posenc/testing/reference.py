"""Attention by its definition, one query and one key after the other: what everything must equal.

It shares nothing with the backends but what ``attention`` refuses. Everything is float64, dense,
and written in the order in which the definition is read; it is slow, and meant to be.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import cast

import torch
from torch import Tensor

from posenc.backends.features import read, readers
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

    Raises:
        TypeError: An argument is of another kind than said here; what may meet is told by
            ``visible``.
        ValueError: A number has no meaning, as a ``softcap`` of 0; no encoding reads the hidden
            state that was given, or one would and none was; ``positional`` changes positions, which
            each call may draw anew; shapes do not belong together.

    Example:
        >>> x, here = torch.randn(1, 2, 3, 4), torch.arange(3)
        >>> causal = reference_attention(x, x, x, q_positions=here, k_positions=here,
        ...                              visible=lambda row, q, k: k <= q)
        >>> torch.allclose(causal[:, :, 0], x[:, :, 0].double())
        True
    """
    positional = Positional() if positional is None else positional
    if positional.remaps:
        raise ValueError(
            f"positional changes positions, by {positional.positions}, which may draw others at "
            f"each call. Pass what positional.remapped(...) gives as q_positions and k_positions, "
            f"and encodings without it."
        )
    encodings = cast("Sequence[ScoreEncoding]", positional.scores)
    _check(query, key, value, added)
    if sinks is not None:  # beside ∞ − ∞ a row would be NaN; the limit is a sink that takes all
        sinks = sinks.clamp(max=torch.finfo(sinks.dtype).max)
    if q_hidden is None or k_hidden is None:
        read(readers(encodings), q_hidden, k_hidden)  # which says that it was not given
    query, key, value = query.double(), key.double(), value.double()
    outputs = []
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    for encoding in cast("Sequence[QueryKeyEncoding]", positional.queries_keys):
        table = encoding.table(q_positions, dtype=torch.float64)
        query = encoding.encode_queries(query, table)
        outputs.insert(0, lambda out, e=encoding, t=table: e.encode_output(out, t))
        if not keys_encoded:
            table = encoding.table(k_positions, dtype=torch.float64)
            key = encoding.encode_keys(key, table)
            value = encoding.encode_values(value, table)
    group = query.shape[1] // key.shape[1]
    keys = torch.stack([key[:, head // group] for head in range(query.shape[1])], dim=1)
    values = torch.stack([value[:, head // group] for head in range(query.shape[1])], dim=1)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    tables = []
    for encoding in encodings:
        table = encoding.table(q_positions, k_positions, dtype=torch.float64)
        features = {}
        if encoding.reads_hidden:
            features["q_features"] = encoding.query_features(cast(Tensor, q_hidden).double())
            features["k_features"] = encoding.key_features(cast(Tensor, k_hidden).double())
        scores = encoding.encode(scores, table, q=query, k=key, scale=scale, **features)
        tables.append((encoding, table))
    if added is not None:
        scores = scores + added.double().expand_as(scores)
    weights = _softmax(scores, _hidden(scores, visible), sinks)
    out = torch.einsum("bhqk,bhkd->bhqd", weights, values)
    for encoding, table in tables:
        out = encoding.encode_output(out, weights, table)
    for change in outputs:
        out = change(out)
    return out


def _check(query: Tensor, key: Tensor, value: Tensor, added: Tensor | None) -> None:
    """Refuse what would be broadcast, or added as if it were a number."""
    for name, x in {"query": query, "key": key, "value": value}.items():
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim != 4:
            kind = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} is {kind}; it must be floating [batch, heads, seq, width].")
    heads, kv_heads = query.shape[1], key.shape[1]
    alike = len(query) == len(key) and key.shape[:3] == value.shape[:3]
    if not alike or kv_heads == 0 or heads % kv_heads:
        raise ValueError(
            f"query, key and value have shapes {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)}. Give all three one batch, keys and values one number of heads "
            f"and tokens, and queries as many heads or a multiple."
        )
    if added is not None and not added.is_floating_point():
        raise TypeError(
            f"added is {added.dtype}; it must be floating numbers. For a mask pass visible=, as "
            f"lambda row, q, k: bool(mask[q, k])."
        )


def _hidden(scores: Tensor, visible: Visible | None) -> Tensor:
    batch, _, q_len, k_len = scores.shape
    hidden = torch.zeros(batch, 1, q_len, k_len, dtype=torch.bool)
    if visible is not None:
        for row in range(batch):
            for q in range(q_len):
                for k in range(k_len):
                    hidden[row, 0, q, k] = not visible(row, q, k)
    return hidden.to(scores.device)


def _softmax(scores: Tensor, hidden: Tensor, sinks: Tensor | None) -> Tensor:
    """exp of what is seen over its sum, a sink counted; zero where nothing is seen."""
    scores = scores.masked_fill(hidden, -torch.inf)
    shape = (*scores.shape[:-1], 1)
    sink = scores.new_full(shape, -torch.inf)
    if sinks is not None:
        sink = sinks.double().view(1, -1, 1, 1).expand(shape)
    top = torch.cat((scores, sink), dim=-1).amax(-1, keepdim=True).detach()
    top = torch.where(top == -torch.inf, 0.0, top)
    exponentials = (scores - top).exp()
    total = exponentials.sum(-1, keepdim=True) + (sink - top).exp()
    return exponentials / torch.where(total == 0, 1.0, total)


def documents_of(ids: Sequence[int]) -> list[int]:
    """The number of each token's document: a new one begins where the id changes.

    Example:
        >>> documents_of([7, 7, 3, 7])
        [0, 0, 1, 2]
    """
    numbers, current = [], -1
    for index, one in enumerate(ids):
        current += index == 0 or one != ids[index - 1]
        numbers.append(current)
    return numbers
