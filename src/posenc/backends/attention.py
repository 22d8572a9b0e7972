"""One call: attention with any encodings of queries, keys and scores."""

from math import sqrt

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc.backends.choice import Plan, considered
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import working_dtype
from posenc.encodings.positional import Positional
from posenc.positions import checked


def attention(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    positional: Positional | None = None,
    q_positions: Int64[Tensor, "..."] | None = None,
    k_positions: Int64[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    padding_mask: Bool[Tensor, "batch k_len"] | None = None,
    document_ids: Int64[Tensor, "batch k_len"] | None = None,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    keys_encoded: bool = False,
    route: str | None = None,
) -> Float[Tensor, "batch heads q_len value_dim"]:
    """Attention with positions in it, by the cheapest exact route.

    softmax(what the score encodings make of encode(q) · encode(k) · scale) v

    The routes mean the same and differ in cost: ``"sdpa"`` where nothing touches the scores,
    ``"flex"`` on an accelerator, ``"strided"`` for biases of distance, which needs no memory of
    size queries × keys, ``"dense"`` with a mask of that size, ``"explicit"`` for encodings that
    need the scores themselves. ``explain_attention`` says which is taken, and why.

    Args:
        q: Queries.
        k: Keys; their heads divide those of the queries.
        v: Values.
        positional: Encodings. Those of tokens act before attention, and are not applied here.
        q_positions: ``[q_len]``, ``[batch, q_len]`` or a grid ``[batch, q_len, axes]``. If not
            given, keys stand at 0, 1, 2, … and the queries are the last of them.
        k_positions: Where the keys stand, likewise; give both or none.
        causal: Whether a key at a larger position than its query's is hidden (on a grid: one that
            comes later in the row).
        window: How many positions a query sees to each side, its own among them.
        padding_mask: True where a key is real. Padding is seen by nobody; what stands in its own
            rows afterwards means nothing.
        document_ids: For packed rows: tokens see those with the same id, and a new document begins
            where the id changes.
        mask: Any other mask, broadcastable to ``[batch, heads, q_len, k_len]``. Boolean: true where
            a query may see a key. Floating: a number to add to the scores.
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given.
        dropout: Probability of dropping a weight.
        keys_encoded: Whether ``k`` comes from a cache that holds encoded keys.
        route: The name of a route to insist on.

    Raises:
        TypeError: Positions are not integers, or a mask is no mask.
        ValueError: Shapes do not fit, only one side has positions, an encoding was built for other
            heads, or ``route`` cannot be taken.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", equation 1 (arXiv:1706.03762).

    Example:
        >>> from posenc import ALiBi, Rotary
        >>> q, k = torch.randn(1, 8, 600, 64), torch.randn(1, 2, 600, 64)
        >>> attention(q, k, k, Positional(queries_keys=Rotary(64)), causal=True).shape
        torch.Size([1, 8, 600, 64])
        >>> attention(q, k, k, Positional(scores=ALiBi(8)), causal=True).shape
        torch.Size([1, 8, 600, 64])
    """
    positional = Positional() if positional is None else positional
    specification = _meeting(q, k, v, q_positions, k_positions, causal, window, padding_mask,
                       document_ids, mask)  # fmt: skip
    chosen, _ = _considered(q, positional, specification, dropout, route)
    dtype = working_dtype(q.dtype)
    for encoding in positional.queries_keys:
        table = encoding.table(specification.queries, dtype=dtype)  # type: ignore[operator]
        q = encoding.encode_queries(q, table)  # type: ignore[operator]
        if not keys_encoded:
            if not specification.one_table:
                table = encoding.table(specification.keys, dtype=dtype)  # type: ignore[operator]
            k = encoding.encode_keys(k, table)  # type: ignore[operator]
    return chosen(q, k, v, scale=_scale(q, scale), dropout=dropout)


def explain_attention(
    q: Float[Tensor, "batch heads q_len head_dim"],
    k: Float[Tensor, "batch kv_heads k_len head_dim"],
    v: Float[Tensor, "batch kv_heads k_len value_dim"],
    positional: Positional | None = None,
    q_positions: Int64[Tensor, "..."] | None = None,
    k_positions: Int64[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    padding_mask: Bool[Tensor, "batch k_len"] | None = None,
    document_ids: Int64[Tensor, "batch k_len"] | None = None,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    route: str | None = None,
) -> str:
    """The route that ``attention`` takes with these arguments, and why none before it.

    Example:
        >>> from posenc import ALiBi
        >>> x = torch.randn(2, 4, 512, 16)
        >>> hidden = torch.ones(512, 512, dtype=torch.bool)
        >>> print(explain_attention(x, x, x, Positional(scores=ALiBi(4)), mask=hidden))
        dense: a mask of queries × keys holds all of it
          not sdpa: an encoding changes the scores
          not flex: it pays on an accelerator only
          not strided: the mask may be any
    """
    specification = _meeting(q, k, v, q_positions, k_positions, causal, window, padding_mask,
                       document_ids, mask)  # fmt: skip
    positional = Positional() if positional is None else positional
    chosen, passed = _considered(q, positional, specification, dropout, route)
    lines = [f"{chosen.name}: {chosen.why}", *(f"  not {n}: {why}" for n, why in passed.items())]
    return "\n".join(lines)


def _considered(
    q: Tensor,
    positional: Positional,
    specification: AttentionSpecification,
    dropout: float,
    route: str | None,
) -> tuple[Plan, dict[str, str]]:
    return considered(
        list(positional.scores),  # type: ignore[arg-type]
        specification,
        heads=q.shape[1],
        dtype=q.dtype,
        dropout=dropout,
        route=route,
    )


def _scale(q: Tensor, scale: float | None) -> float:
    return 1 / sqrt(q.shape[-1]) if scale is None else scale


def _meeting(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_positions: Tensor | None,
    k_positions: Tensor | None,
    causal: bool,
    window: int | None,
    padding_mask: Tensor | None,
    document_ids: Tensor | None,
    mask: Tensor | None,
) -> AttentionSpecification:
    """The arguments, checked."""
    _check_shapes(q, k, v)
    if (q_positions is None) != (k_positions is None):
        raise ValueError(
            "Positions were given for one side alone. Pass q_positions and k_positions, or neither."
        )
    if window is not None and window < 1:
        raise ValueError(f"window is {window}; a query sees 1 position (its own) or more.")
    for name, rows in (("padding_mask", padding_mask), ("document_ids", document_ids)):
        if rows is not None and rows.shape != (len(k), k.shape[-2]):
            raise ValueError(
                f"{name} has shape {tuple(rows.shape)}; k has {len(k)} rows of {k.shape[-2]} keys. "
                f"Pass one value a key, [{len(k)}, {k.shape[-2]}]."
            )
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(
            f"padding_mask is {padding_mask.dtype}; it must be bool, True where a key is real."
        )
    if mask is not None and not (mask.dtype == torch.bool or mask.is_floating_point()):
        raise TypeError(
            f"mask is {mask.dtype}; it must be bool, true where a query may see a key, or a "
            f"floating number to add. For a mask of ones and zeros pass mask.bool()."
        )
    same = q_positions is k_positions
    if q_positions is not None and k_positions is not None:
        q_positions = _fitting(checked(q_positions, "q_positions"), q, "q_positions")
        k_positions = (
            q_positions if same else _fitting(checked(k_positions, "k_positions"), k, "k_positions")
        )
    return AttentionSpecification(
        batch=len(q),
        q_len=q.shape[-2],
        k_len=k.shape[-2],
        q_positions=q_positions,
        k_positions=k_positions,
        causal=causal,
        window=window,
        padding_mask=padding_mask,
        document_ids=document_ids,
        mask=mask,
        device=q.device,
    )


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(
            f"q, k and v have shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}; "
            f"attention takes [batch, heads, seq, head_dim]."
        )
    if q.shape[1] % k.shape[1]:
        raise ValueError(
            f"q has {q.shape[1]} heads, which {k.shape[1]} key heads cannot serve evenly. Pass "
            f"keys whose heads divide those of the queries."
        )
    if k.shape[:3] != v.shape[:3] or len(q) != len(k) or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q, k and v have shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}. Give "
            f"keys and values one batch, heads and length, and queries the batch and width of keys."
        )


def _fitting(positions: Tensor, x: Tensor, name: str) -> Tensor:
    batch, seq = len(x), x.shape[-2]
    shape = tuple(positions.shape)
    if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
        raise ValueError(
            f"{name} have shape {shape}; there are {batch} rows of {seq} tokens. Pass [{seq}] for "
            f"all rows alike, [{batch}, {seq}], or [{batch}, {seq}, axes] for a grid."
        )
    return positions
