"""Sandwich: what sinusoidal encodings say of a distance, as a bias without parameters."""

import torch

from posenc.arguments import check_multiple, check_whole
from posenc.encodings.bias import RelativeBias
from posenc.encodings.shapes import Distance, Dtype, Profile
from posenc.frequencies import Powers
from posenc.guards import floating, widest
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.sincos import SinCos
from posenc.positions import checked


class Sandwich(RelativeBias):
    """bias(h, q, k) = PE(q) · PE(k) / r_h = Σ_i cos((q − k) ω_i) / r_h,   r_h = 8h / heads

    with the frequencies ω_i = base^(−2i/dim) of a sinusoidal encoding of width ``dim``.

    Args:
        first: The first i. It is 0 in attention-gym and by default; NeMo's sum runs from 1 to dim/2
            and is dim/2 less, which changes no softmax.

    Reference:
        Chi et al. 2023, "Dissecting Transformer Length Extrapolation via the Lens of Receptive
        Field Analysis" (arXiv:2212.10356), which presents Sandwich.

    Example:
        >>> Sandwich(heads=8, dim=4).profile([0, 1])[:2]
        tensor([[2.0000, 1.5403],
                [1.0000, 0.7701]])
    """

    takes_reals = True

    def __init__(self, heads: int, dim: int = 128, base: float = 10_000.0, *, first: int = 0):
        super().__init__()
        check_whole(heads=heads)
        check_multiple(2, dim=dim)
        check_whole(0, first=first)
        self.heads, self.dim, self.base, self.first = heads, dim, base, first
        self.sincos = SinCos(Powers(base, tuple(range(2 * first, 2 * first + dim, 2)), dim))

    def profile(self, distance: Distance, *, dtype: Dtype = None) -> Profile:
        distance, dtype = checked(distance, "distance", reals=True), floating(dtype)
        fine = torch.float64 if dtype == torch.float64 else torch.float32
        wide = widest(distance.device)
        cos, _ = cos_sin(self.sincos, distance, fine)
        similarity = cos.to(wide).sum(-1)
        ratios = [8 * h / self.heads for h in range(1, self.heads + 1)]
        each = torch.tensor(ratios, dtype=wide, device=distance.device)
        return (similarity / each.view(-1, *[1] * distance.ndim)).to(dtype)
