"""``scaled_dot_product_attention`` with one mask of queries × keys."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from posenc.backends.base import Backend, Request
from posenc.backends.masks import added, joined
from posenc.backends.sdpa import SDPA, grouped, masked_attention
from posenc.backends.strided.toeplitz import at_distances
from posenc.guards import eager, may_look, recorded, transformed

FAR = 1000.0
"""Where the logarithm of a sum has three digits left behind the point, in float32."""


@dataclass(frozen=True, eq=False)
class Dense:
    """torch's attention with a mask; a sink is one more key, whose value is zero."""

    why: str
    mask: Tensor  # [#batch, #heads, q_len, k_len], boolean or a number to add
    sinks: Tensor | None = None  # [heads], if there are any
    any_numbers: bool = False  # whether the caller gave numbers to add, which may be any
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
        attend = partial(
            masked_attention, query, key, value, mask, dropout_p, scale=scale,
            enable_gqa=grouped(query, key),
        )  # fmt: skip
        # Torch's fused attention gives a mask no gradient, which it cannot know inside torch.func.
        if (mask.is_floating_point() and transformed()) or (
            self.any_numbers and recorded(query, key, value, mask) and _far_from_zero(mask)
        ):
            with sdpa_kernel(SDPBackend.MATH):
                return attend()
        return attend()


def _far_from_zero(mask: Tensor) -> bool:
    """Whether the greatest number of a row is large, as −1e9 is where all of it is padding.

    Torch's fused attention on the CPU computes weights backward from the logarithm of each row's
    sum. Where that is ±1e9 it is rounded to the greatest score, and every weight would be 1.
    """
    if not mask.is_cpu or not mask.numel():
        return False
    if not may_look(mask):
        return True
    most = mask.detach().amax(-1).abs()
    return bool(((most > FAR) & (most < torch.inf)).any())


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
    if request.scores and request.distance_alone and spec.is_one_segment and eager():
        mask = _of_distance(request)
        return Dense("a mask of queries × keys holds all of it", mask, spec.sinks)
    mask = spec.attn_mask
    for encoding in request.scores:
        mask = added(request.bias_table(encoding), mask)
    mask = joined(mask, spec.visible())
    if mask is None and spec.sinks is None:
        return SDPA("nothing changes or hides a score", is_causal=False)
    if mask is None:
        mask = torch.ones(1, 1, spec.q_len, spec.k_len, dtype=torch.bool, device=spec.device)
    given = spec.attn_mask is not None and spec.attn_mask.is_floating_point()
    return Dense("a mask of queries × keys holds all of it", mask, spec.sinks, given)


def _of_distance(request: Request) -> Tensor:
    """The mask of biases of distance, from one number a distance; order hides by distance too."""
    spec = request.specification
    q_len, k_len = spec.q_len, spec.k_len
    values = at_distances(
        request.scores,
        torch.arange(k_len - 1, -q_len, -1, device=spec.device),
        is_causal=spec.is_causal,
        window=spec.window,
        dtype=request.dtype,
    )
    # A window that slides along it is a row; the last query is the farthest from the first key.
    return values.unfold(-1, k_len, 1).flip(-2).unsqueeze(0)
