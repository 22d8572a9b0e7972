"""FIRE: a learned function of a distance that is measured against the query's own position."""

import torch
from torch import nn
from torch.nn import functional as F

from posenc.arguments import check_number, check_positive_number, check_whole
from posenc.encodings.bias import ScoreBias
from posenc.encodings.shapes import Biases, Device, Dtype, KeyRow, QueryRow
from posenc.guards import floating, working_dtype
from posenc.numerics.product import without_autocast
from posenc.positions import checked, float_distances, floats

EPSILON = 1e-6


class FIRE(ScoreBias):
    """bias(h, q, k) = f_h( ψ(q − k) / (ψ(max(q, L)) + 10⁻⁶) ),   ψ(x) = ln(|c·x| + 1)

    with f a network of one hidden layer (ReLU). For keys from position 0 up to their query the
    argument lies in [0, 1] at every length.

    Args:
        threshold: L, which a learned factor scales; the factor begins at 1.
        c: c at the start; it is learned.
        negative_slope: That of a leaky ReLU: 0 in the paper, 0.01 in the authors' code of DAPE.

    Reference:
        Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context
        Transformers" (arXiv:2310.04418), with learned threshold and logarithm.

    Example:
        >>> FIRE(heads=4).table(torch.arange(3), torch.arange(3)).shape
        torch.Size([4, 3, 3])
    """

    takes_reals = True

    def __init__(
        self,
        heads: int,
        hidden: int = 32,
        *,
        threshold: float = 512.0,
        c: float = 0.1,
        negative_slope: float = 0.0,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, hidden=hidden)
        check_positive_number(threshold=threshold, c=c)
        check_number(0.0, negative_slope=negative_slope)
        self.heads, self.hidden = heads, hidden
        self.threshold, self.first_c, self.negative_slope = threshold, c, negative_slope
        factory = {"device": device, "dtype": dtype}
        self.expand = nn.Linear(1, hidden, **factory)
        self.contract = nn.Linear(hidden, heads, **factory)
        # One number each, with an axis: FSDP cuts parameters along their first.
        self.c = nn.Parameter(torch.empty(1, **factory))
        self.factor = nn.Parameter(torch.empty(1, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set c and the factor to where they began, and draw the layers."""
        nn.init.constant_(self.c, self.first_c)
        nn.init.ones_(self.factor)
        self.expand.reset_parameters()
        self.contract.reset_parameters()

    def table(self, q_positions: QueryRow, k_positions: KeyRow, *, dtype: Dtype = None) -> Biases:
        asked = floating(dtype)
        dtype = working_dtype(asked)
        distance = float_distances(q_positions, k_positions, dtype)
        q = floats(checked(q_positions, "q_positions", reals=True), dtype).unsqueeze(-1)
        c, limit = self.c.to(dtype), (self.factor.to(dtype) * self.threshold).abs()
        near = (c * distance).abs().log1p()
        most = (c * torch.maximum(q, limit)).abs().log1p() + EPSILON
        x = (near / most).unsqueeze(-1)
        with without_autocast(x):
            inner = F.linear(x, self.expand.weight.to(dtype), self.expand.bias.to(dtype))
            inner = F.leaky_relu(inner, self.negative_slope)
            made = F.linear(inner, self.contract.weight.to(dtype), self.contract.bias.to(dtype))
        return made.movedim(-1, -3).to(asked)
