"""``scaled_dot_product_attention`` of torch and nothing else: no number of our own is held."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from posenc.backends.base import Backend, Request
from posenc.numerics.product import without_autocast

TORCHS_ATTENTION = F.scaled_dot_product_attention
"""As it was on import: ``context_parallel`` puts another function in its place."""


def refuse_context_parallel() -> None:
    """Raise inside torch's ``context_parallel``, where this rank's tokens would attend alone."""
    if F.scaled_dot_product_attention is not TORCHS_ATTENTION:
        raise RuntimeError(
            "scaled_dot_product_attention was replaced, as torch's context_parallel does, and "
            "queries would meet the keys of this rank alone; pass shards=posenc.distributed.Shards."
        )


def masked_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout_p: float, **named: Any
) -> Tensor:
    """Torch's attention with a mask, which autocast on a CPU would round as it does content."""
    if not query.is_cpu or not torch.is_autocast_enabled("cpu"):
        return TORCHS_ATTENTION(query, key, value, mask, dropout_p, **named)
    dtype, content = torch.get_autocast_dtype("cpu"), (query, key, value)
    query, key, value = (x if x.dtype == torch.float64 else x.to(dtype) for x in content)
    with without_autocast(query):
        return TORCHS_ATTENTION(query, key, value, mask, dropout_p, **named)


def grouped(query: Tensor, key: Tensor) -> bool:
    """Whether several query heads share a key head."""
    # In a graph the comparison is a symbol; only a branch makes a plain bool of it.
    return True if query.shape[1] != key.shape[1] else False  # noqa: SIM210


@dataclass(frozen=True, eq=False)
class SDPA:
    """Attention whose scores nothing touches but torch's own causal flag."""

    why: str
    is_causal: bool
    name = "sdpa"
    reads_padding = False

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        if self.is_causal and scale <= 0:  # torch scales what it has hidden: −∞ · 0 is no number
            query, scale = (query * 0, 1.0) if scale == 0 else (-query, -scale)
        return TORCHS_ATTENTION(
            query, key, value, None, dropout_p, self.is_causal,
            scale=scale, enable_gqa=grouped(query, key),
        )  # fmt: skip


def sdpa(request: Request) -> Backend | str:
    """The backend, or why it cannot serve."""
    spec = request.specification
    if request.scores:
        return "an encoding changes the scores"
    if spec.softcap is not None or spec.sinks is not None:
        return "it knows neither soft capping nor sinks"
    if not spec.hides_nothing_but_order:
        return "a mask, padding, documents or a window hide keys"
    if not spec.is_causal or spec.sees_all:
        return SDPA("nothing changes or hides a score", is_causal=False)
    if spec.in_step:
        return SDPA("order alone hides keys", is_causal=True)
    return "queries and keys are not in step, as torch's causal flag needs them"
