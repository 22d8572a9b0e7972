"""Whether a model can tell two orders of the same tokens apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posenc.transformer import Encoder


@dataclass(frozen=True)
class OrderEffect:
    """The attention of the same tokens in two orders, token matched with token.

    Attributes:
        weights: ``[heads, seq, seq]``: the first block's softmax matrices, tokens as they came.
        reordered: The same for the other order, its rows and columns put back to match.
        attention_difference: The largest |weights − reordered|.
        output_difference: The largest difference between the outputs of one token.
    """

    weights: Float[Tensor, "heads seq seq"]
    reordered: Float[Tensor, "heads seq seq"]
    attention_difference: float
    output_difference: float

    def tells_apart(self, rounding: float) -> bool:
        """Whether a difference is more than rounding."""
        return max(self.attention_difference, self.output_difference) >= rounding


@torch.no_grad()
def order_effect(
    encoder: Encoder, x: Float[Tensor, "seq dim"], order: Sequence[int] | Int[Tensor, "seq"]
) -> OrderEffect:
    """Run ``x`` and ``x[order]``, and compare what becomes of each token.

    Without an encoding, attention sees a set: A(P x) = P A(x) for every permutation P, so both
    differences are rounding alone.

    Args:
        encoder: An encoder that is not causal, in evaluation mode.
        x: Embedded tokens.
        order: The other order, as indices into ``x``; a tensor of them, as of ``torch.randperm``,
            will do.

    Raises:
        TypeError: ``order`` holds what is no whole number.
        ValueError: ``order`` is no permutation of the tokens, the encoder or a part of it is in
            training mode, or it sees more than a set without any encoding: it is causal, has a
            window, or changes positions.

    Example:
        >>> encoder = Encoder(dim=8, heads=2, depth=1).double().eval()
        >>> effect = order_effect(encoder, torch.randn(3, 8, dtype=torch.float64), [2, 1, 0])
        >>> effect.attention_difference < 1e-12
        True
    """
    if any(part.training for part in encoder.modules()):
        raise ValueError(
            "The encoder is in training mode, and may drop elements at random. Call encoder.eval()."
        )
    _check_sees_a_set(encoder)
    return both_orders(encoder, x, order)


@torch.no_grad()
def both_orders(
    encoder: Encoder, x: Float[Tensor, "seq dim"], order: Sequence[int] | Int[Tensor, "seq"]
) -> OrderEffect:
    """``order_effect`` of an encoder that may see more than a set, for who tells that apart.

    Raises:
        TypeError: ``order`` holds what is no whole number.
        ValueError: ``order`` is no permutation of the tokens.
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


def _check_sees_a_set(encoder: Encoder) -> None:
    """Refuse what would make a difference of its own, which were taken for the encoding's."""
    has_window = any(each is not None for each in encoder.windows)
    sees = {"is_causal": encoder.is_causal, "window": has_window}
    if masks := [name for name, is_set in sees.items() if is_set]:
        raise ValueError(
            f"The encoder was built with {masks[0]}, by which order matters without any encoding. "
            f"Build it without."
        )
    for positional in (encoder.first, *encoder.layers):
        if positional.remaps:
            raise ValueError(
                f"The encoder changes positions by {positional.positions}, at each call anew. "
                f"Leave that out, to see what positions 0, 1, 2, … do."
            )
