"""Time2Vec: one channel that grows with time, and learned sines beside it."""

from typing import Literal, get_args

import torch
from torch import nn

from posenc.arguments import check_choice, check_whole
from posenc.encodings.shapes import Device, Dtype, Embeddings, Row
from posenc.encodings.tokens.addition import Added
from posenc.guards import floating
from posenc.positions import checked, in_float64

Periodic = Literal["sin", "cos"]


class Time2Vec(Added):
    """t2v(τ)[0] = ω_0 τ + φ_0,   t2v(τ)[i] = f(ω_i τ + φ_i) for i from 1 on, all learned.

    With f = sin this is also the time embedding of mTAN, which has one for each head. Times are
    whole or real (``posenc.positions.Coordinates``). ``weight`` is ω and ``bias`` φ, ``[dim]``.
    Angles are float64.

    Args:
        dim: Width; one channel is linear.
        function: f, ``"sin"`` or ``"cos"``.

    Reference:
        Kazemi et al. 2019, "Time2Vec", equation 1 (arXiv:1907.05321); Shukla & Marlin 2021,
        "Multi-Time Attention Networks for Irregularly Sampled Time Series", equation 1
        (arXiv:2101.10318), whose code begins as ``torch.nn.Linear`` does, as here.

    Example:
        >>> from posenc.positions import Coordinates
        >>> Time2Vec(8).table(Coordinates([0.5, 2.25])).shape
        torch.Size([2, 8])
    """

    takes_reals = True

    def __init__(
        self,
        dim: int,
        function: Periodic = "sin",
        *,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(2, dim=dim)
        check_choice(get_args(Periodic), function=function)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.function = function
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(dim, **factory))
        self.bias = nn.Parameter(torch.empty(dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw ω and φ anew from U(−1, 1)."""
        nn.init.uniform_(self.weight, -1.0, 1.0)
        nn.init.uniform_(self.bias, -1.0, 1.0)

    def table(self, positions: Row, *, dtype: Dtype = None) -> Embeddings:
        positions = checked(positions, device=self.weight.device, reals=True)
        times = in_float64(positions).unsqueeze(-1)
        angles = times * in_float64(self.weight) + in_float64(self.bias)
        periodic = angles[..., 1:].sin() if self.function == "sin" else angles[..., 1:].cos()
        table = torch.cat((angles[..., :1], periodic), dim=-1)
        return table.to(floating(dtype)).to(positions.device)
