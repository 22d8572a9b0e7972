"""One layer of the encoder: attention, then feed-forward, each with its residual and norm."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice
from posenc.backends.base import Dropout
from posenc.transformer.attention import AttentionStages, MultiHeadAttention
from posenc.transformer.feed_forward import Activation, FeedForward, FeedForwardStages, dropped
from posenc.transformer.normalization import LayerNorm, NormStages

Norm = Literal["pre", "post"]


@dataclass(frozen=True)
class BlockStages:
    """Every number of one block; the order of norms and sums is that of its ``norm``.

    Attributes:
        attention: Inside attention.
        attention_sum: The block's input + what attention gives.
        attention_norm: The first norm: of the input (pre) or of that sum (post).
        feed_forward: Inside the feed-forward layer.
        feed_forward_sum: What came to this half of the block + what the layer gives.
        feed_forward_norm: The second norm: of what came (pre) or of that sum (post).
        output: The result of the block.
    """

    attention: AttentionStages
    attention_sum: Tensor
    attention_norm: NormStages
    feed_forward: FeedForwardStages
    feed_forward_sum: Tensor
    feed_forward_norm: NormStages
    output: Tensor


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to what came in, with a norm after or before.

    post (Vaswani et al.): x ← norm₁(x + attention(x)),  x ← norm₂(x + feed_forward(x))
    pre (GPT-2 and later): x ← x + attention(norm₁(x)),  x ← x + feed_forward(norm₂(x))

    Args:
        dim: Width of a token.
        heads: Number of query heads.
        inner: Width inside the feed-forward layer; 4·dim if not given.
        kv_heads: Number of key and value heads; ``heads`` if not given.
        head_dim: Width of a head; dim / heads if not given.
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given.
        window: How many tokens a token sees to each side; see ``MultiHeadAttention``.
        norm: Whether the norms come before or after attention and feed-forward.
        activation: ``"relu"``, ``"gelu"``, or a function.
        dropout: Probability of dropping, while training: attention weights, activated elements,
            and elements of what is added to the residual.
        attention_dropout: That of attention weights, if it is another.
        eps: ε of the norms.
        bias: Whether the linear maps have a bias.

    Reference:
        Vaswani et al. 2017, section 3.1 (arXiv:1706.03762); Xiong et al. 2020, "On Layer
        Normalization in the Transformer Architecture", table 1 (arXiv:2002.04745).

    Example:
        >>> import torch
        >>> Block(16, heads=4, norm="pre")(torch.randn(1, 6, 16)).shape
        torch.Size([1, 6, 16])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        inner: int | None = None,
        *,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        scale: float | None = None,
        window: int | None = None,
        norm: Norm = "post",
        activation: Activation = "relu",
        dropout: float = 0.0,
        attention_dropout: float | None = None,
        eps: float = 1e-5,
        bias: bool = True,
    ):
        super().__init__()
        check_choice(get_args(Norm), norm=norm)
        self.norm: Norm = norm
        self.attention = MultiHeadAttention(
            dim,
            heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            bias=bias,
            dropout=dropout if attention_dropout is None else attention_dropout,
            scale=scale,
            window=window,
        )
        self.feed_forward = FeedForward(
            dim, 4 * dim if inner is None else inner, activation, dropout=dropout, bias=bias
        )
        self.attention_norm = LayerNorm(dim, eps)
        self.feed_forward_norm = LayerNorm(dim, eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch seq dim"], *, drop: Dropout | None = None, **attention: Any
    ) -> Float[Tensor, "batch seq dim"]:
        """The block on ``x``; further arguments are those of ``MultiHeadAttention``.

        With ``drop``, hidden states are cut among devices, and it drops their elements.
        """
        first, second, layer = self.attention_norm, self.feed_forward_norm, self.dropout
        pre, drops = self.norm == "pre", layer.training
        added = self.attention(first(x) if pre else x, **attention)
        x = x + (dropped(added, layer, drop, 0) if drops else added)
        x = x if pre else first(x)
        added = self.feed_forward(second(x) if pre else x, drop)
        x = x + (dropped(added, layer, drop, 2) if drops else added)
        return x if pre else second(x)

    def stages(self, x: Float[Tensor, "batch seq dim"], **attention: Any) -> BlockStages:
        """The same block with every number between; arguments as for ``MultiHeadAttention``."""
        pre = self.norm == "pre"
        first = self.attention_norm.stages(x) if pre else None
        attended = self.attention.stages(first.scaled if first else x, **attention)
        x = attention_sum = x + self.dropout(attended.output)
        if first is None:
            first = self.attention_norm.stages(x)
            x = first.scaled
        second = self.feed_forward_norm.stages(x) if pre else None
        fed = self.feed_forward.stages(second.scaled if second else x)
        x = feed_forward_sum = x + self.dropout(fed.output)
        if second is None:
            second = self.feed_forward_norm.stages(x)
            x = second.scaled
        return BlockStages(attended, attention_sum, first, fed, feed_forward_sum, second, x)
