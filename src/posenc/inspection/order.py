"""Whether a model can tell two orders of the same tokens apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posenc.transformer import Encoder


@dataclass(frozen=True)
class OrderEffect:
    """The attention of the same tokens in two orders, token matched with token."""

    #: ``[heads, seq, seq]``: the first block's softmax matrices, tokens as they came
    weights: Float[Tensor, "heads seq seq"]
    reordered: Float[Tensor, "heads seq seq"]  #: of the other order, put back to match
    attention_difference: float  #: the largest |weights − reordered|
    output_difference: float  #: the largest difference between the outputs of one token

    def tells_apart(self, rounding: float) -> bool:
        """Whether a difference is more than rounding."""
        return max(self.attention_difference, self.output_difference) >= rounding


@torch.no_grad()
def order_effect(
    encoder: Encoder, x: Float[Tensor, "seq dim"], order: Sequence[int] | Int[Tensor, "seq"]
) -> OrderEffect:
    """Run ``x`` and ``x[order]`` in evaluation mode, and compare what becomes of each token.

    Without an encoding, attention sees a set: A(P x) = P A(x) for every permutation P, so both
    differences are rounding alone. A causal mask, a window or drawn positions tell orders apart.

    Example:
        >>> encoder = Encoder(dim=8, heads=2, depth=1).double().eval()
        >>> effect = order_effect(encoder, torch.randn(3, 8, dtype=torch.float64), [2, 1, 0])
        >>> effect.attention_difference < 1e-12
        True
    """
    order = [int(place) for place in order]
    if sorted(order) != list(range(len(x))):
        raise ValueError(f"order is {order}; it must name each of {len(x)} tokens once.")
    back = torch.tensor(order, device=x.device).argsort()
    first, second = (encoder.stages(tokens[None]) for tokens in (x, x[order]))
    weights = first.blocks[0].attention.weights[0]
    reordered = second.blocks[0].attention.weights[0][:, back][:, :, back]
    return OrderEffect(
        weights,
        reordered,
        attention_difference=(weights - reordered).abs().max().item(),
        output_difference=(first.output[0] - second.output[0, back]).abs().max().item(),
    )
