"""KERPLE: biases and weights from conditionally positive definite kernels, learned by each head."""

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import check_pairs
from posenc.encodings.bias import RelativeBias
from posenc.encodings.scores.content import Content, OfContent
from posenc.encodings.shapes import (
    Biases,
    Device,
    Distance,
    Dtype,
    KeyRow,
    Profile,
    QueryRow,
    Scores,
)
from posenc.guards import eager, floating
from posenc.positions import checked, float_distances, floats

Kernel = Literal["log", "power"]

LEAST, MOST = 0.01, 2.0  # of the parameters, as the authors clamp them


def _drawn(kernel: "KERPLE | KERPLEWeight") -> None:
    """Draw p from U(0, 2), a from U(0, 1) and r from U(0, 2)."""
    nn.init.uniform_(kernel.p, 0.0, 2.0)
    nn.init.uniform_(kernel.a, 0.0, 1.0)
    if kernel.r is not None:
        nn.init.uniform_(kernel.r, 0.0, 2.0)


class KERPLE(RelativeBias):
    """A penalty that grows with the logarithm, or with a power, of the distance.

    log: −p_h · ln(1 + a_h · d),   power: −a_h · d^(p_h),
    log with an exponent: −p_h · ln(1 + a_h · d^(r_h))

    with d = max(q − k, 0). Numbers are held at 0.01 or more and exponents at 2 or less, where the
    kernel stays conditionally positive definite. In training each call writes the bounds into the
    parameters, as the authors' code does. The kernel is computed in the dtype of the table.

    Args:
        kernel: ``"log"``, which extrapolates better, or ``"power"``.
        exponent: Whether the logarithmic kernel has an exponent r too, the three-parameter form.

    Reference:
        Chi et al. 2022, "KERPLE", logarithmic and power kernels (arXiv:2205.09921); bounds as in
        ``megatron/mpu/layers.py`` of chijames/KERPLE.

    Example:
        >>> kerple = KERPLE(heads=1)
        >>> _ = nn.init.ones_(kerple.p), nn.init.ones_(kerple.a)
        >>> kerple.profile(torch.tensor([0, 1, 3])).detach()
        tensor([[-0.0000, -0.6931, -1.3863]])
    """

    takes_reals = True
    head_axes: ClassVar[Mapping[str, int] | None] = {"p": 0, "a": 0, "r": 0}
    reset_parameters = _drawn

    def __init__(
        self,
        heads: int,
        kernel: Kernel = "log",
        *,
        exponent: bool = False,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads)
        check_choice(get_args(Kernel), kernel=kernel)
        if exponent and kernel == "power":
            raise ValueError("The power kernel has its exponent, p; exponent=True adds none.")
        self.heads, self.exponent = heads, exponent
        self.kernel: Kernel = kernel
        factory = {"device": device, "dtype": dtype}
        self.p = nn.Parameter(torch.empty(heads, **factory))
        self.a = nn.Parameter(torch.empty(heads, **factory))
        self.r = nn.Parameter(torch.empty(heads, **factory)) if exponent else None
        self.reset_parameters()

    def profile(self, distance: Distance, *, dtype: Dtype = None) -> Profile:
        """The kernel of each head at each distance."""
        distance, dtype = checked(distance, "distance", reals=True), floating(dtype)
        away = floats(distance, dtype).clamp(min=0)
        each = (-1, *[1] * away.ndim)
        a = held(self, self.a, None).to(dtype).view(each)
        p = held(self, self.p, MOST if self.kernel == "power" else None).to(dtype).view(each)
        if self.kernel == "power":
            return -a * power(away, p)
        if self.r is not None:
            away = power(away, held(self, self.r, MOST).to(dtype).view(each))
        return -p * torch.log1p(a * away)


class KERPLEWeight(OfContent):
    """Scores multiplied with a kernel that falls with distance: score · exp(−a_h · d^(p_h))

    with d = max(q − k, 0), and the bounds of ``KERPLE``. The authors' forms that have both are
    ``Positional(scores=(KERPLEWeight(8), KERPLE(8, "power")))`` and its like.

    Reference:
        Chi et al. 2022, "KERPLE" (arXiv:2205.09921); ``ParallelKerplePower`` in the authors' code.

    Example:
        >>> weight = KERPLEWeight(heads=1)
        >>> _ = nn.init.ones_(weight.p), nn.init.ones_(weight.a)
        >>> weight(torch.ones(1, 3, 3)).detach()[0, 2]
        tensor([0.1353, 0.3679, 1.0000])
    """

    is_relative = is_pairwise = takes_reals = True

    reset_parameters = _drawn

    def __init__(self, heads: int, *, device: Device = None, dtype: Dtype = None):
        super().__init__()
        check_whole(heads=heads)
        self.heads, self.r = heads, None
        self.p = nn.Parameter(torch.empty(heads, device=device, dtype=dtype))
        self.a = nn.Parameter(torch.empty(heads, device=device, dtype=dtype))
        self.reset_parameters()

    def table(self, q_positions: QueryRow, k_positions: KeyRow, *, dtype: Dtype = None) -> Biases:
        """The weight of every pair, at most 1."""
        dtype = floating(dtype)
        away = float_distances(q_positions, k_positions, dtype).clamp(min=0).unsqueeze(-3)
        a = held(self, self.a, None).to(dtype).view(-1, 1, 1)
        p = held(self, self.p, MOST).to(dtype).view(-1, 1, 1)
        return (-a * power(away, p)).exp()

    def changed(self, scores: Scores, table: Biases, content: Content) -> Scores:
        check_pairs("KERPLEWeight", scores, table)
        return scores * table


def power(away: Tensor, exponent: Tensor) -> Tensor:
    """away^exponent for distances from 0 on, with finite slopes at 0."""
    # d^p has no slope in p at 0; log(1) there gives the same 0 and a finite gradient.
    return torch.where(away > 0, torch.exp(exponent * away.where(away > 0, 1.0).log()), 0.0)


def held(module: nn.Module, number: nn.Parameter, most: float | None) -> Tensor:
    """``number`` within its bounds; beyond one it has the gradient of the bound, to come back."""
    if module.training and torch.is_grad_enabled():
        if eager():
            number.data.clamp_(LEAST, most)  # unseen by autograd, like the authors' assignment
        elif torch.compiler.is_compiling():
            with torch.no_grad():
                number.clamp_(LEAST, most)
    return number.clamp(LEAST, most).detach() + (number - number.detach())
