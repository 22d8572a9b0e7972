"""``scaled_dot_product_attention`` with one mask of queries × keys that holds all there is."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from posenc.backends.base import Backend, Request
from posenc.backends.masks import added, joined
from posenc.backends.sdpa import SDPA, TORCHS_ATTENTION, grouped


@dataclass(frozen=True, eq=False)
class Dense:
    """torch's attention with a mask; a sink is one more key, whose value is zero.

    Attributes:
        mask: Boolean, true where a query may see a key, or a number to add;
            ``[#batch, #heads, q_len, k_len]``.
        sinks: ``[heads]``, if there are any.
    """

    why: str
    mask: Tensor
    sinks: Tensor | None = None
    name = "dense"
    reads_padding = True

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        mask = self.mask
        if self.sinks is not None:
            mask = _with_sinks(mask, self.sinks, query)
            key, value = F.pad(key, (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1))
        if mask.is_floating_point() and (
            query.device.type != "cpu" or query.dtype == torch.float64
        ):
            mask = mask.to(query.dtype)
        return TORCHS_ATTENTION(
            query, key, value, mask, dropout_p, scale=scale, enable_gqa=grouped(query, key)
        )


def _with_sinks(mask: Tensor, sinks: Tensor, query: Tensor) -> Tensor:
    """The mask as a number to add, with one column more: the sink of each head."""
    if mask.dtype == torch.bool:
        wide = torch.promote_types(query.dtype, torch.float32)
        mask = torch.zeros(mask.shape, dtype=wide, device=mask.device).masked_fill(
            ~mask, -torch.inf
        )
    column = sinks.to(mask.dtype).view(1, -1, 1, 1)
    shape = torch.broadcast_shapes(mask.shape[:-1], column.shape[:-1])
    return torch.cat((mask.expand(*shape, -1), column.expand(*shape, 1)), dim=-1)


def dense(request: Request) -> Backend | str:
    """The backend, or why it cannot serve."""
    if not request.biases_alone:
        return "an encoding depends on content"
    spec = request.specification
    if spec.softcap is not None:
        return "scores are capped before biases are added, which a mask cannot say"
    mask = spec.attn_mask
    for encoding in request.scores:
        mask = added(request.bias_table(encoding), mask)
    mask = joined(mask, spec.visible())
    if mask is None and spec.sinks is None:
        return SDPA("nothing changes or hides a score", is_causal=False)
    if mask is None:
        mask = torch.ones(1, 1, spec.q_len, spec.k_len, dtype=torch.bool, device=spec.device)
    return Dense("a mask of queries × keys holds all of it", mask, spec.sinks)
