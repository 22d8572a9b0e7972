"""Three embeddings of a token, summed and normalized, in one pass over memory."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.kernels.addition.operator import recorded
from posenc.kernels.embedding_norm import cpu as native


def embedding_norm(
    ids: tuple[Int64[Tensor, "*batch seq"], Int64[Tensor, "..."], Int64[Tensor, "..."]],
    weights: tuple[Float[Tensor, "_ dim"], Float[Tensor, "_ dim"], Float[Tensor, "_ dim"]],
    gamma: Float[Tensor, "dim"],
    beta: Float[Tensor, "dim"],
    eps: float = 1e-12,
    padding_index: int | None = None,
) -> Float[Tensor, "*batch seq dim"]:
    """γ (s − mean) / √(variance + ε) + β of s = weights₀[ids₀] + weights₁[ids₁] + weights₂[ids₂].

    Arithmetic is float32 at least, rounded once to the dtype of the weights. Where gradients are
    recorded it is torch's own operations: their gradient costs more than what is saved here.

    Args:
        ids: Which rows each token takes; the second and third broadcast against the first.
        weights: Vectors of words, token types and positions.
        gamma: Scale of each feature.
        beta: Shift of each feature.
        eps: ε; 1e-12 in BERT.
        padding_index: The word whose vector gets no gradient.

    Raises:
        IndexError: An id is not a row of its weights.

    Reference:
        Devlin et al. 2019, "BERT", figure 2 (arXiv:1810.04805).

    Example:
        >>> weights = torch.tensor([[2.0, 4.0]]), torch.zeros(1, 2), torch.zeros(1, 2)
        >>> first = torch.tensor([0])
        >>> embedding_norm((first, first, first), weights, torch.ones(2), torch.zeros(2))
        tensor([[-1.,  1.]])
    """
    if not recorded(*weights, gamma, beta):
        made = native.embedding_norm(ids, weights, gamma, beta, eps)
        if made is not None:
            return made
    wide = torch.promote_types(weights[0].dtype, torch.float32)
    words = F.embedding(ids[0], weights[0], padding_idx=padding_index).to(wide)
    summed = words + F.embedding(ids[1], weights[1]) + F.embedding(ids[2], weights[2])
    normed = F.layer_norm(summed, gamma.shape, gamma.to(wide), beta.to(wide), eps)
    return normed.to(weights[0].dtype)
