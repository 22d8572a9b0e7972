"""Results of attention to some of the keys, and how they join.

With L = log Σ exp(scores) over the keys of a part, results of parts merge by the weights
exp(L_part − L), L = log Σ exp(L_part). Backward, each part forms its weights P = exp(scores − L)
anew and needs of all others no more than L and δ = rowsum(dO ∘ O):
dV = Pᵀ dO, dS = P ∘ (dO Vᵀ − δ). Neither way holds a matrix of queries × keys.
"""

from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.strided.toeplitz import Toeplitz
from posenc.encodings.base import working_dtype


class Partial(NamedTuple):
    """A result for some of the keys."""

    out: Float[Tensor, "batch heads q_len value_dim"]  # in float32 at least
    lse: Float[Tensor, "batch heads q_len"]  # log Σ exp(scores); −∞ where none is seen


class Merged(NamedTuple):
    """What the backward pass of a part must know of all parts together."""

    out: Tensor  # their result
    lse: Tensor  # their log-sum-exp; 0 where nothing is seen at all
    grad: Tensor  # the gradient of out
    delta: Tensor  # rowsum(grad ∘ out)
    alone: bool = False  # whether it is all that its queries see: rows of dS sum to zero


class Backward(NamedTuple):
    """What the gradients of a run of queries and a run of keys depend on."""

    content: tuple[Tensor, Tensor, Tensor]  # queries, keys and values
    bias: Toeplitz  # the bias of every distance
    merged: Merged  # the result for all keys, also those that lie elsewhere, and its gradient
    offset: int  # position of the first query less that of the first key
    scale: float  # what products are multiplied with
    softcap: float | None = None  # c in c · tanh(products / c), before the bias is added


class Part(Protocol):
    """Attention of some queries to some keys, in both directions and in the queries' dtype."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What else gradients must reach."""
        ...

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for these keys."""
        ...

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and ``tensors``, in float32 at least."""
        ...


def merge(one: Partial, other: Partial) -> Partial:
    """Both results as one."""
    lse = torch.logaddexp(one.lse, other.lse)
    shift = lse.masked_fill(lse == -torch.inf, 0.0)
    out = sum(part.out * (part.lse - shift).exp().unsqueeze(-1) for part in (one, other))
    return Partial(out, lse)  # type: ignore[arg-type]


def nothing_seen(q: Tensor, v: Tensor) -> Partial:
    """What attention to no keys gives, which merges with anything."""
    wide = working_dtype(q.dtype)
    return Partial(
        q.new_zeros(*q.shape[:-1], v.shape[-1], dtype=wide),
        q.new_full(q.shape[:-1], -torch.inf, dtype=wide),
    )


def with_sinks(merged: Partial, sinks: Tensor) -> Partial:
    """The same with one score more a head, which takes its share and gives no value.

    With a sink s the row is out · exp(L − L'), where L' = log(exp L + exp s).

    Reference:
        Agarwal et al. 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2.2
        (arXiv:2508.10925).
    """
    lse = torch.logaddexp(merged.lse, sinks.to(merged.lse.dtype).view(1, -1, 1))
    shift = lse.masked_fill(lse == -torch.inf, 0.0)
    return Partial(merged.out * (merged.lse - shift).exp().unsqueeze(-1), lse)


def gradient_of_sinks(sinks: Tensor, merged: Merged) -> Tensor:
    """A sink has weight exp(s − L') and no value, so its score gets −exp(s − L') · δ."""
    weight = (sinks.to(merged.lse.dtype).view(1, -1, 1) - merged.lse).exp()
    return (-weight * merged.delta).sum((0, 2)).to(sinks.dtype)


def merged_results(out: Tensor, lse: Tensor, grad: Tensor, *, alone: bool = False) -> Merged:
    """What the parts of a result need of it in their backward pass."""
    grad = grad.contiguous()
    delta = (grad.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
    return Merged(out, lse.masked_fill(lse == -torch.inf, 0.0), grad, delta, alone)
