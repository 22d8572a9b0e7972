"""What a model did against what its configuration was read as: scores, scales, masks, tables."""

import re
from collections.abc import Sequence

import torch
from tests.oracle_models.probing import Attended, Rotated
from torch import Tensor

from posenc import MultimodalRotary, QueryKeyEncoding, Rotary

LAYER = re.compile(r"\.(\d+)(?:\.|$)")
NEAR = 2e-3
"""Float32 angles of a model are off by about 6e-8 a radian; positions here are below 2^10."""


def layer_of(path: str) -> int | None:
    """The number of the layer in the path of a module."""
    found = LAYER.search(f".{path}")
    return int(found.group(1)) if found else None


def by_head(x: Tensor, length: int) -> Tensor | None:
    """``[heads, seq, width]``, however a model lays it out; None for other shapes."""
    while x.ndim > 4 and x.shape[0] == 1:
        x = x[0]
    if x.ndim == 4:
        x = x[0]
    if x.ndim == 2:
        x = x[None]
    if x.ndim != 3:
        return None
    if x.shape[1] != length and x.shape[0] == length:
        x = x.transpose(0, 1)
    return x.double() if x.shape[1] == length else None


def stripped(encoding: QueryKeyEncoding, width: int) -> QueryKeyEncoding | None:
    """The encoding for what a function is given: the whole of a head, or what is rotated of it."""
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    if not isinstance(rotary, Rotary):
        return encoding
    if width == rotary.head_dim:
        return encoding
    if width != rotary.rotated_dim:
        return None
    bare = Rotary(rotary.frequencies, pairing=rotary.pairing)
    if isinstance(encoding, MultimodalRotary):
        return MultimodalRotary(bare, encoding.sections, encoding.arrangement)
    return bare


def turned(encoding: QueryKeyEncoding, x: Tensor, positions: Tensor) -> Tensor:
    """``x`` of ``[heads, seq, width]`` as a query is encoded."""
    table = encoding.table(positions, dtype=torch.float64)
    return encoding.encode_queries(x[None], table)[0]


def far(one: Tensor, other: Tensor) -> float:
    """The largest difference of two tensors of scores, as a share of the largest of them."""
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-12))


def pairs_of(calls: Sequence[Rotated]) -> list[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]:
    """(before, after) of queries and keys: from one call, or from two in a row."""
    calls = [each for each in calls if each.name.lstrip("_").startswith("apply")]
    both = [each for each in calls if len(each.after) >= 2]
    if both:
        return [(each.before[:2], each.after[:2]) for each in both]  # type: ignore[misc]
    return [
        ((one.before[0], two.before[0]), (one.after[0], two.after[0]))
        for one, two in zip(calls[::2], calls[1::2], strict=False)
    ]


def rotation_differs(
    encoding: QueryKeyEncoding | None, calls: Sequence[Rotated], positions: Tensor
) -> str | None:
    """What is wrong with an encoding, against the calls of functions that rotate; None if right."""
    found = pairs_of(calls)
    if not found:
        return None if encoding is None else "it is said to rotate, and no function was called"
    if encoding is None:
        return "it rotates, and is said not to"
    seq = positions.shape[0]
    for before, after in found:
        q, k, q_after, k_after = (by_head(x, seq) for x in (*before, *after))
        if q is None or k is None or q_after is None or k_after is None:
            return "shapes are not understood: " + str([tuple(x.shape) for x in before])
        ours = stripped(encoding, q.shape[-1])
        if ours is None:
            return f"{q.shape[-1]} channels are handed over, {encoding} was read"
        theirs = q_after @ k_after[:1].mT
        own = turned(ours, q, positions) @ turned(ours, k, positions)[:1].mT
        if (share := far(own, theirs)) > NEAR:
            return f"scores differ by {share:.2g}"
    return None


def permuted(calls: Sequence[Rotated], positions: Tensor) -> bool:
    """Whether a function hands channels back in another order."""
    for before, after in pairs_of(calls):
        x, y = by_head(before[0], len(positions)), by_head(after[0], len(positions))
        if x is None or y is None or x.shape != y.shape:
            return True
        first = int((positions.reshape(len(positions), -1).sum(-1) == 0).nonzero()[0, 0])
        scale = y[:, first].norm() / x[:, first].norm()
        if not torch.allclose(y[:, first], x[:, first] * scale, atol=1e-4):
            return True
    return False


def scores_differ(
    encodings: Sequence[QueryKeyEncoding], seen: Attended, positions: Tensor
) -> str | None:
    """What is wrong with encodings, against the products that attention formed."""
    seq = positions.shape[0]
    if seen.q is None or seen.k is None:
        return None
    q, k = by_head(seen.q, seq), by_head(seen.k, seq)
    if q is None or k is None:
        return None
    theirs = q @ k[:1].mT
    # Contents are those of position 0, where nothing turns.
    own_q, own_k = q[:, :1].expand_as(q), k[:, :1].expand_as(k)
    for encoding in encodings:
        ours = stripped(encoding, q.shape[-1])
        if ours is None:
            return f"heads are {q.shape[-1]} wide, {encoding} was read"
        table = ours.table(positions, dtype=torch.float64)
        held = getattr(ours, "rotary", ours)
        factor = getattr(getattr(held, "frequencies", None), "attention_factor", 1.0)
        part = getattr(held, "rotated_dim", q.shape[-1])
        if factor != 1.0 and part != q.shape[-1]:
            return None
        own_q = ours.encode_queries(own_q[None], table)[0] / factor
        own_k = ours.encode_keys(own_k[None], table)[0] / factor
    share = far(own_q @ own_k[:1].mT, theirs)
    return f"products differ by {share:.2g}" if share > NEAR else None


def scale_of(seen: Attended, length: int) -> float | None:
    """What attention multiplies its products with, where nothing is masked."""
    if seen.q is None or seen.k is None:
        return None
    q, k = by_head(seen.q, length), by_head(seen.k, length)
    if q is None or k is None:
        return None
    products, scores = q[0] @ k[0].T, seen.scores.reshape(-1, *seen.scores.shape[-2:])[0].double()
    if scores.shape != products.shape or not torch.isfinite(scores[-1]).all():
        return None
    # Of differences in the last row, which sees every key: what is added to a row falls out.
    size, seen_keys = products.abs().max(), scores[-1] > -1e4
    products, scores = products[-1, seen_keys], scores[-1, seen_keys]
    if len(scores) < 2:
        return None
    products, scores = products - products[0], scores - scores[0]
    if products.abs().max() <= 1e-3 * size:
        return None  # nothing turns: all products are alike
    apart = products.abs() > 0.1 * products.abs().max().clamp(min=1e-9)
    ratios = scores[apart] / products[apart]
    if not apart.any() or ratios.max() - ratios.min() > 0.01 * ratios.abs().max():
        return None  # something else is added that depends on the key
    return float(ratios.median())
