"""DAPE: a bias that a small network adapts to the scores it is added to."""

import torch
from torch import nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.bias import ScoreBias, take_claims
from posenc.encodings.scores.content import Content, OfContent
from posenc.encodings.shapes import Biases, Device, Dtype, Places, Scores
from posenc.guards import floating
from posenc.numerics.product import products
from posenc.positions import checked


class DAPE(OfContent):
    """scores + B + f([scores, B]), f a network over the heads of one pair

    f maps the 2·heads numbers of a query and a key, scores and bias B of all heads, to ``heads``
    numbers: one hidden layer, leaky ReLU. B is any bias: ``ALiBi``, ``KERPLE``, ``FIRE`` in the
    paper. Without one it is scores + f(scores), as the authors have it over rotary positions.

    Load layers 0 and 2 of a checkpoint's ``mlp2`` as ``expand`` and ``contract``. Where the bias is
    FIRE, its ``mlp`` goes into ``FIRE(heads, negative_slope=0.01)``.

    Args:
        bias: The bias B, for as many heads, or None.

    Reference:
        Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation",
        equation 3 (arXiv:2405.14722); ``DAPE.py`` of chuanyang-Zheng/DAPE, without a bias
        ``DAPEV1`` in its ``positional_embeddings.py``.

    Example:
        >>> from posenc import ALiBi
        >>> DAPE(4, ALiBi(4))(torch.randn(1, 4, 5, 5)).shape
        torch.Size([1, 4, 5, 5])
    """

    is_relative = is_pairwise = takes_reals = True

    def __init__(
        self,
        heads: int,
        bias: ScoreBias | None,
        hidden: int = 32,
        *,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden)
        if bias is not None:
            check_bias(heads, bias)
        self.heads, self.bias, self.hidden = heads, bias, hidden
        take_claims(self, *([] if bias is None else [bias]))
        factory = {"device": device, "dtype": dtype}
        self.expand = nn.Linear(heads if bias is None else 2 * heads, hidden, **factory)
        self.contract = nn.Linear(hidden, heads, **factory)

    def reset_parameters(self) -> None:
        """Draw both layers, as ``torch.nn.Linear`` does; the bias keeps its own."""
        self.expand.reset_parameters()
        self.contract.reset_parameters()

    def table(self, q_positions: Places, k_positions: Places, *, dtype: Dtype = None) -> Biases:
        if self.bias is not None:
            return self.bias.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        queries = checked(q_positions, "q_positions", reals=True)
        keys = checked(k_positions, "k_positions", reals=True)
        rows = torch.broadcast_shapes(queries.shape[:-1], keys.shape[:-1])
        zero = torch.zeros((), dtype=floating(dtype), device=queries.device)
        return zero.expand(*rows, self.heads, queries.shape[-1], keys.shape[-1])

    def changed(self, scores: Scores, table: Biases, content: Content) -> Scores:
        wide = scores.dtype
        bias = table.to(wide).expand(scores.shape)
        parts = [scores] if self.bias is None else [scores, bias]
        pairs = torch.cat(parts, dim=-3).movedim(-3, -1)
        inner = F.leaky_relu(products(pairs, self.expand.weight) + self.expand.bias.to(wide))
        made = products(inner, self.contract.weight) + self.contract.bias.to(wide)
        return scores + bias + made.movedim(-1, -3)


def check_bias(heads: int, bias: object) -> None:
    """``bias`` is a bias of so many heads."""
    if not isinstance(bias, ScoreBias) or bias.heads != heads:
        raise ValueError(f"bias is {bias!r}; it must be a ScoreBias of {heads} heads.")
