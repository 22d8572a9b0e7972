"""What positions change in attention: with and without an encoding, and in another order."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from posenc.backends import attention
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys import Rotary
from posenc.positions import consecutive
from posenc.transformer import Encoder


@dataclass(frozen=True)
class AttentionEffect:
    """Weights of every head, without and with positions."""

    without: Float[Tensor, "heads seq seq"]  #: ``[heads, seq, seq]``
    with_encoding: Float[Tensor, "heads seq seq"]  #: ``[heads, seq, seq]``
    difference: Float[Tensor, "heads seq seq"]  #: with − without


@torch.no_grad()
def attention_effect(
    q: Float[Tensor, "heads seq head_dim"],
    k: Float[Tensor, "heads seq head_dim"],
    positional: Positional,
) -> AttentionEffect:
    """Softmax weights of queries and keys, plain and with the encodings of ``positional``.

    Encodings of queries, keys and scores are applied; those of tokens act before, and are not.

    Example:
        >>> from posenc import ALiBi
        >>> q = torch.ones(2, 3, 4)  # equal tokens: without positions all weights are 1/3
        >>> effect = attention_effect(q, q, Positional(scores=ALiBi(2)))
        >>> effect.without[0, 0]
        tensor([0.3333, 0.3333, 0.3333])
        >>> bool(effect.with_encoding[0, 0].argmax() == 0)
        True
    """
    values = torch.eye(q.shape[-2], dtype=q.dtype, device=q.device).expand(1, len(q), -1, -1)
    off = attention(q[None], k[None], values)[0]
    on = attention(q[None], k[None], values, positional=positional)[0]
    return AttentionEffect(off, on, on - off)


@torch.no_grad()
def rotary_scores(
    rotary: Rotary, q: Float[Tensor, "head_dim"], k: Float[Tensor, "head_dim"], length: int
) -> Float[Tensor, "length"]:
    """R(distance) q · k for distances 0 … length − 1: what rotary attention sees of two vectors.

    The key stands at 0, and the query so far after it. The attention factor of a schedule (YaRN's)
    is in both. Narrower numbers than float32 are turned and summed in float32.

    Example:
        >>> ones = torch.ones(4)
        >>> rotary_scores(Rotary(4), ones, ones, 2)
        tensor([4.0000, 3.0805])
    """
    wide = torch.promote_types(torch.promote_types(q.dtype, k.dtype), torch.float32)
    q, k = q.to(wide), k.to(wide)
    table = rotary.table(consecutive(length), dtype=wide)
    heads = 0 if rotary.heads_first else 1  # the axis of the one head
    queries = rotary.encode_queries(q.expand(length, -1).contiguous().unsqueeze(heads), table)
    key = rotary.encode_keys(k.expand(1, 1, -1).contiguous(), table[:1])
    return queries.squeeze(heads) @ key[0, 0]


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
