"""Sandwich: what sinusoidal encodings say of a distance, as a bias without parameters."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import RelativeBias
from posenc.frequencies import Geometric
from posenc.numerics.sincos import SinCos
from posenc.positions import checked


class Sandwich(RelativeBias):
    """bias(h, q, k) = PE(q) · PE(k) / r_h = Σ_i cos((q − k) ω_i) / r_h,   r_h = 8h / heads

    with the frequencies ω_i = base^(−2i/dim) of a sinusoidal encoding of width ``dim``. It decays
    like a logarithm of the distance, more slowly the larger the ratio r_h of a head.

    Public forms differ: NeMo's takes the frequencies from i = 1 on, which is another bias, and
    subtracts dim / 2, which changes no softmax; one more leaves out the cosine.

    Args:
        heads: Number of query heads.
        dim: Width of the sinusoidal encoding behind it.
        base: Its base.

    Raises:
        ValueError: A number is not positive, or ``dim`` is odd.

    Reference:
        Chi et al. 2023, "Dissecting Transformer Length Extrapolation via the Lens of Receptive
        Field Analysis" (arXiv:2212.10356), which presents Sandwich.

    Example:
        >>> Sandwich(heads=8, dim=4).profile(torch.tensor([0, 1]))[:2]
        tensor([[2.0000, 1.5403],
                [1.0000, 0.7701]])
    """

    def __init__(self, heads: int, dim: int = 128, base: float = 10_000.0):
        super().__init__()
        if heads < 1 or dim < 2 or dim % 2:
            raise ValueError(
                f"heads is {heads} and dim {dim}; give 1 head or more and an even width."
            )
        self.heads, self.dim, self.base = heads, dim, base
        self.sincos = SinCos(Geometric(dim, base))

    def profile(
        self, distance: Int64[Tensor, "*shape"], *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """Sums of exact cosines, over the ratio of each head."""
        dtype = dtype or torch.float32
        fine = torch.float64 if dtype == torch.float64 else torch.float32
        wide = torch.float32 if distance.device.type == "mps" else torch.float64
        cos, _ = self.sincos.cos_sin(checked(distance, "distance"), fine)
        similarity = cos.to(wide).sum(-1)
        ratios = [8 * h / self.heads for h in range(1, self.heads + 1)]
        each = torch.tensor(ratios, dtype=wide, device=distance.device)
        return (similarity / each.view(-1, *[1] * distance.ndim)).to(dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        base = "" if self.base == 10_000.0 else f", base={self.base}"
        return f"heads={self.heads}, dim={self.dim}{base}"
