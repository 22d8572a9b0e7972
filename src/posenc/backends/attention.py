"""One call: torch's scaled dot product attention, with positions."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.backends.arguments import Arguments, read_arguments
from posenc.backends.base import Asked, Backend, Sharded, Sizes, built
from posenc.backends.choice import considered, explained
from posenc.backends.explicit import read, readers, reading
from posenc.backends.masks import nothing_of
from posenc.backends.sdpa import TORCHS_ATTENTION, refuse_context_parallel
from posenc.encodings.base import working_dtype
from posenc.encodings.positional import Positional
from posenc.positions import Positions


def attention(
    query: Float[Tensor, "batch heads q_len head_dim"],
    key: Float[Tensor, "batch kv_heads k_len head_dim"],
    value: Float[Tensor, "batch kv_heads k_len value_dim"],
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool | None = None,
    positional: Positional | None = None,
    q_positions: Positions | None = None,
    k_positions: Positions | None = None,
    padding_mask: Bool[Tensor, "batch k_len"] | None = None,
    q_padding_mask: Bool[Tensor, "batch q_len"] | None = None,
    document_ids: Int64[Tensor, "batch k_len"] | None = None,
    q_document_ids: Int64[Tensor, "batch q_len"] | None = None,
    cu_seqlens: Int64[Tensor, "documents_and_one"] | None = None,
    window: int | None = None,
    sinks: Float[Tensor, "heads"] | None = None,
    softcap: float | None = None,
    keys_encoded: bool = False,
    q_hidden: Float[Tensor, "batch q_len dim"] | None = None,
    k_hidden: Float[Tensor, "batch k_len dim"] | None = None,
    backend: str | None = None,
    shards: Sharded | None = None,
    spread: str | None = None,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """torch's ``scaled_dot_product_attention``, with positions in it.

    softmax(what positions make of encode(query) · encode(key) · scale) value

    The first arguments are torch's, with three differences. Without positions, queries are the
    last of the keys, also for ``is_causal``; torch takes them for the first. ``attn_mask`` and
    ``is_causal`` combine. Key heads that divide the query heads serve them, unless
    ``enable_gqa=False``.

    The backends give the same result and differ in cost; ``explain_attention`` says which one is
    taken, and why:

    - ``"sdpa"`` where nothing touches the scores,
    - ``"flex"`` on an accelerator,
    - ``"strided"`` for biases of distance, sinks and soft capping, without a matrix in memory,
    - ``"dense"`` with a mask of queries × keys,
    - ``"explicit"`` for encodings that need the scores themselves.

    Queries may be any of the tokens, in any order; then pass what describes them too:
    ``q_positions``, ``q_padding_mask`` and ``q_document_ids``.

    Args:
        query: Queries.
        key: Keys; their heads divide those of the queries.
        value: Values.
        attn_mask: A mask that broadcasts to ``[batch, heads, q_len, k_len]``. Boolean: true where a
            query may see a key. Floating: a number to add to the scores. It does not tell padding
            from documents; encodings that depend on the tokens before or between need
            ``padding_mask`` and ``document_ids`` too.
        dropout_p: Probability of dropping a weight.
        is_causal: Whether a key at a larger position than its query's is hidden (on a grid: one
            that comes later in the row).
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given.
        enable_gqa: Whether fewer key heads may serve; ``None``: where they divide.
        positional: Encodings. Those of tokens act before attention and are not applied here.
        q_positions: ``[q_len]``, ``[batch, q_len]`` or a grid ``[batch, q_len, axes]``. If not
            given, keys stand at 0, 1, 2, …, and the queries are the last of them. For real numbers
            pass ``posenc.positions.Coordinates``.
        k_positions: Where the keys stand; give both or neither.
        padding_mask: True where a key is real. No query sees padding.
        q_padding_mask: True where a query is real; the results of others mean nothing. If not
            given, all are real.
        document_ids: For packed rows: tokens see those with the same id, and a new document begins
            where the id changes.
        q_document_ids: The document of each query; needed where the queries are not the last
            tokens. Then tokens with equal ids are one document.
        cu_seqlens: Instead of ids: where documents begin and the last one ends, 0 … k_len, the same
            in all rows.
        window: How many positions a query sees to each side, its own among them.
        sinks: A score for each head that takes its share of every row's weight and gives no value
            (gpt-oss). A sink of ∞ takes all weight.
        softcap: c in c · tanh(score / c), before any bias is added (Gemma 2).
        keys_encoded: Whether ``key`` (and ``value``, where an encoding changes values) comes
            encoded from a cache.
        q_hidden: The hidden state of the queries' tokens, for encodings of scores that read it.
        k_hidden: That of the keys' tokens; give both or neither.
        backend: The name of the backend to take.
        shards: Where the tokens are cut among devices, as ``posenc.distributed.Shards`` has it:
            ``query``, ``key`` and ``value`` are those of this device, and meet those of all.
            Pass padding and documents to ``shards``.
        spread: How they meet: ``"gather"``, ``"heads"`` or ``"ring"``; by default what moves least.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", equation 1 (arXiv:1706.03762).

    Example:
        >>> import torch
        >>> from posenc import ALiBi, Rotary
        >>> q, k = torch.randn(1, 8, 600, 64), torch.randn(1, 2, 600, 64)
        >>> attention(q, k, k, is_causal=True, positional=Positional(queries_keys=Rotary(64))).shape
        torch.Size([1, 8, 600, 64])
        >>> attention(q, k, k, is_causal=True, positional=Positional(scores=ALiBi(8))).shape
        torch.Size([1, 8, 600, 64])
    """
    if F.scaled_dot_product_attention is not TORCHS_ATTENTION:
        refuse_context_parallel()
    given = read_arguments(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa,
        positional=positional, q_positions=q_positions, k_positions=k_positions,
        padding_mask=padding_mask, q_padding_mask=q_padding_mask, document_ids=document_ids,
        q_document_ids=q_document_ids, cu_seqlens=cu_seqlens, window=window, sinks=sinks,
        softcap=softcap, keys_encoded=keys_encoded, q_hidden=q_hidden, k_hidden=k_hidden,
        shards=shards,
    )  # fmt: skip
    if shards is None:
        chosen = _considered(given, backend, spread)[0]
    else:
        given, chosen, _ = _spread(given, backend, shards, spread)
    spec, outputs = given.specification, []
    if given.likely_real is not None or (chosen.reads_padding and given.has_padding):
        query, key, value = given.without_padding()
    if given.scores and (reading_scores := readers(given.scores)):
        chosen = reading(chosen, read(reading_scores, *given.hidden_without_padding()))
    for encoding in given.queries_keys:
        dtype = working_dtype(query.dtype)
        table = encoding.table(spec.queries, dtype=dtype)  # type: ignore[arg-type]
        query = encoding.encode_queries(query, table)
        if encoding.changes_output:
            outputs.append((encoding, table))
        if not keys_encoded:
            if spec.keys is not spec.queries:
                table = encoding.table(spec.keys, dtype=dtype)  # type: ignore[arg-type]
            key = encoding.encode_keys(key, table)
            if encoding.changes_values:
                value = encoding.encode_values(value, table)
    if not query.dtype == key.dtype == value.dtype:
        query, key, value = _in_one_dtype(query, key, value)
    if shards is None and spec.is_empty:
        out = query.new_zeros(*query.shape[:-1], value.shape[-1]) + nothing_of(query, key, value)
    else:
        out = chosen(query, key, value, scale=given.scale, dropout_p=dropout_p)
    for encoding, table in reversed(outputs):
        out = encoding.encode_output(out, table)
    return out


def _in_one_dtype(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All three as torch's attention takes them inside autocast, where alone they may differ."""
    kind, dtypes = query.device.type, {query.dtype, key.dtype, value.dtype}
    if torch.float64 in dtypes or query.is_meta or not torch.is_autocast_enabled(kind):
        raise TypeError(f"query, key and value are {query.dtype}, {key.dtype} and {value.dtype}.")
    dtype = torch.get_autocast_dtype(kind)
    return query.to(dtype), key.to(dtype), value.to(dtype)


def explain_attention(
    *arguments: Any,
    backend: str | None = None,
    shards: Sharded | None = None,
    spread: str | None = None,
    **named: Any,
) -> str:
    """The backend that ``attention`` takes with these arguments, and why none before it.

    Example:
        >>> import torch
        >>> from posenc import ALiBi
        >>> x = torch.randn(2, 4, 512, 16)
        >>> seen = torch.ones(512, 512, dtype=torch.bool)
        >>> print(explain_attention(x, x, x, seen, positional=Positional(scores=ALiBi(4))))
        dense: a mask of queries × keys holds all of it
          not sdpa: an encoding changes the scores
          not flex: it pays on an accelerator only
          not strided: the mask may be any
    """
    given = read_arguments(*arguments, shards=shards, **named)
    if shards is not None:
        return _spread(given, backend, shards, spread)[2]
    return explained(*_considered(given, backend, spread))


def _considered(
    given: Arguments, backend: str | None, spread: str | None
) -> tuple[Backend, dict[str, str]]:
    """The backend that serves these arguments, and why each before it was passed over."""
    if spread is not None:
        raise ValueError(f"spread is {spread!r}, and there are no shards.")
    return considered(
        given.scores,
        given.specification,
        heads=given.query.shape[1],
        dtype=given.query.dtype,
        dropout_p=given.dropout_p,
        backend=backend,
    )


def _spread(
    given: Arguments, backend: str | None, shards: Sharded, spread: str | None
) -> tuple[Arguments, Backend, str]:
    """The same where tokens are cut among devices, and the words of ``explain_attention``."""
    if given.remaps:
        raise ValueError(
            "positional changes positions, and each device would draw its own; change those of "
            "the whole row before they are cut."
        )
    spreading = shards.spreading(given.specification)
    q, k, v = given.query, given.key, given.value
    sizes = Sizes(q.shape[1], k.shape[1], q.shape[-1], v.shape[-1], q.dtype)
    given = replace(given, specification=spreading.specification)
    asked = Asked(given.scores, given.specification, sizes, spread, backend, given.dropout_p, built)
    return given, *spreading.considered(asked)
