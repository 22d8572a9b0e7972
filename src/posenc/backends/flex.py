"""The same biases and masks as functions for FlexAttention."""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from posenc.backends.explicit import grouped
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import RelativeBias, ScoreBias, working_dtype
from posenc.positions import runs

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def score_mod(
    bias: ScoreBias,
    q_positions: Tensor,
    k_positions: Tensor,
    *,
    dtype: torch.dtype = torch.float32,
) -> ScoreMod:
    """A bias as the function that FlexAttention applies to each score.

    A relative bias is read from its profile, one number a distance; any other from its table.

    Args:
        bias: The bias.
        q_positions: ``[q_len]`` or ``[batch, q_len]``.
        k_positions: ``[k_len]`` or ``[batch, k_len]``.
        dtype: Dtype of the bias.

    Reference:
        Dong et al. 2024, "Flex Attention" (arXiv:2412.05496).

    Example:
        >>> from posenc import ALiBi
        >>> add = score_mod(ALiBi(1), torch.arange(3), torch.arange(3))
        >>> index = torch.tensor([0, 2])
        >>> add(torch.zeros(2), index * 0, index * 0, index, index * 0)
        tensor([ 0.0000, -0.0078])
    """
    if not isinstance(bias, RelativeBias):
        table = bias.table(q_positions, k_positions, dtype=dtype)
        table = table if table.ndim == 4 else table.unsqueeze(0)

        def from_table(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return score + table[b % len(table), h, q, k]

        return from_table
    queries, keys = (t if t.ndim == 2 else t.unsqueeze(0) for t in (q_positions, k_positions))
    least = int(queries.amin() - keys.amax())
    most = int(queries.amax() - keys.amin())
    profile = bias.profile(torch.arange(least, most + 1, device=queries.device), dtype=dtype)

    def from_profile(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        distance = queries[b % len(queries), q] - keys[b % len(keys), k]
        return score + profile[h, distance - least]

    return from_profile


def mask_mod(specification: AttentionSpecification) -> MaskMod | None:
    """What order, a window, padding and documents hide; ``None`` where they hide nothing."""
    hidden_by: list[MaskMod] = []
    shift = specification.k_len - specification.q_len
    if specification.causal and specification.order_is_that_of_rows:
        hidden_by.append(lambda b, h, q, k: q + shift >= k)
    distance = _distance(specification)
    if specification.causal and not specification.order_is_that_of_rows:
        hidden_by.append(lambda b, h, q, k: distance(b, q, k) >= 0)
    if (window := specification.window) is not None:
        hidden_by.append(lambda b, h, q, k: distance(b, q, k).abs() < window)
    if (real := specification.padding_mask) is not None:
        hidden_by.append(lambda b, h, q, k: real[b, k])
    if specification.document_ids is not None:
        ids = runs(specification.document_ids)
        hidden_by.append(lambda b, h, q, k: ids[b, q + shift] == ids[b, k])
    if not hidden_by:
        return None
    from torch.nn.attention.flex_attention import and_masks

    return and_masks(*hidden_by)


def _distance(specification: AttentionSpecification) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    queries, keys = (
        t if t.ndim == 2 else t[None] for t in (specification.queries, specification.keys)
    )
    return lambda b, q, k: queries[b % len(queries), q] - keys[b % len(keys), k]


def attend_flexibly(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encodings: Sequence[ScoreBias],
    specification: AttentionSpecification,
    *,
    scale: float,
) -> Tensor:
    """FlexAttention with these biases; compiled on an accelerator, plain elsewhere."""
    from torch.nn.attention.flex_attention import create_block_mask

    mods = [
        score_mod(encoding, specification.queries, specification.keys, dtype=working_dtype(q.dtype))
        for encoding in encodings
    ]

    def all_mods(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        for mod in mods:
            score = mod(score, b, h, q, k)
        return score

    hidden = mask_mod(specification)
    block_mask = None
    if hidden is not None:
        block_mask = create_block_mask(
            hidden, len(q), None, q.shape[-2], k.shape[-2], device=q.device
        )
    attend = _compiled() if q.device.type == "cuda" else _plain()
    return attend(
        q, k, v,
        score_mod=all_mods if mods else None,
        block_mask=block_mask,
        scale=scale,
        enable_gqa=grouped(q, k),
    )  # fmt: skip


def _plain() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention  # type: ignore[return-value]


@cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(_plain())
