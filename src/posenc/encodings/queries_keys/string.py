"""STRING: rotary in a basis that is learned, or in that of Fourier with learned frequencies."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_multiple, check_positive_number
from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.learned import LearnedAngles
from posenc.encodings.queries_keys.rotation import check_rows, rotate_heads
from posenc.encodings.shapes import CosSinRows, Device, Dtype, Heads
from posenc.frequencies import Geometric
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.product import product
from posenc.positions import in_float64


class CayleySTRING(LearnedAngles):
    """z → RoPE(p) P z: pair i of P z turns by Σ_a p_a f_a,i, with an orthogonal matrix P.

    P = (I − S)(I + S)⁻¹ with a skew matrix S; S and the frequencies f are learned. P serves queries
    and keys of all heads, so products depend on the difference of points, and norms are kept. At
    first P is near the identity. Angles are float64.

    Args:
        head_dim: d, even.
        base: The frequencies begin as base^(−2i/d) along each axis.
        std: Standard deviation of the upper triangle of S at first; the paper does not say it.

    Attributes:
        frequencies: f, ``[axes, d/2]``.
        skew: ``[d, d]``; S is its upper triangle less the transpose of that.

    Reference:
        Schenck et al. 2025, "Learning the RoPEs: Better 2D and 3D Position Encodings with STRING",
        section 3 (arXiv:2502.02562); pairs are neighbors.

    Example:
        >>> from posenc.positions import grid
        >>> CayleySTRING(16, axes=3).table(grid(2, 3, 4)).shape
        torch.Size([24, 2, 8])
    """

    def __init__(
        self,
        head_dim: int,
        axes: int = 2,
        base: float = 100.0,
        *,
        std: float = 0.02,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, axes, heads_first)
        check_positive_number(base=base)
        check_multiple(2, head_dim=head_dim)
        self.base, self.std = base, std
        self.layout = RotaryLayout(True, heads_first=heads_first)
        factory = {"device": device, "dtype": dtype}
        self.frequencies = nn.Parameter(torch.empty(axes, head_dim // 2, **factory))
        self.skew = nn.Parameter(torch.empty(head_dim, head_dim, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Begin anew: geometric frequencies, and a basis near that of the channels."""
        self.frequencies.copy_(Geometric(self.head_dim, self.base).float32("float32"))
        nn.init.normal_(self.skew, std=self.std)

    def angles(self, points: Float[Tensor, "*shape axes"]) -> Float[Tensor, "*shape pairs"]:
        """Σ_a p_a f_a,i."""
        return points @ in_float64(self.frequencies)

    def basis(self) -> Float[Tensor, "d d"]:
        """P, computed in float64; on the CPU where the parameters' device has none."""
        upper = in_float64(self.skew).triu(1)
        skew, one = upper - upper.mT, torch.eye(self.head_dim, dtype=upper.dtype,
                                                device=upper.device)  # fmt: skip
        return torch.linalg.solve(one + skew, one - skew)  # the two factors commute

    def encode_queries(self, q: Heads, table: CosSinRows) -> Heads:
        wide, width = working_dtype(q.dtype), self.head_dim
        based = product(q.to(wide), self.basis().to(wide).to(q.device).mT)
        rotated = rotate_heads(based, table, self.layout, width, width)
        return rotated.to(q.dtype)


class CirculantSTRING(LearnedAngles):
    """z → exp(Σ_a p_a (C_a − C_aᵀ)) z with learned circulant matrices C_a.

    Fourier waves diagonalize all of them: wave j of z, 0 < j < d/2, turns by −2 Σ_a p_a Σ_m c_a,m
    sin(2πjm/d), where c_a is the first column of C_a; its mean, and for even d its alternating sum,
    stay. Products depend on the difference of points, and norms are kept. Angles are float64.

    Args:
        head_dim: d, 3 or more.
        std: Standard deviation of c at first; the paper does not say it.

    Attributes:
        columns: c, ``[axes, d]``.

    Reference:
        Schenck et al. 2025, "Learning the RoPEs: Better 2D and 3D Position Encodings with STRING",
        section 3 (arXiv:2502.02562).

    Example:
        >>> from posenc.positions import grid
        >>> CirculantSTRING(16).table(grid(3, 4)).shape
        torch.Size([12, 2, 7])
    """

    def __init__(
        self,
        head_dim: int,
        axes: int = 2,
        *,
        std: float = 0.1,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, axes, heads_first, least=3)
        self.std = std
        self.columns = nn.Parameter(torch.empty(axes, head_dim, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        nn.init.normal_(self.columns, std=self.std)

    def angles(self, points: Float[Tensor, "*shape axes"]) -> Float[Tensor, "*shape pairs"]:
        sines = _fourier(self.head_dim, points).sin()
        return points @ (-2 * in_float64(self.columns) @ sines.mT)

    def encode_queries(self, q: Heads, table: CosSinRows) -> Heads:
        check_rows(q, table, (2, (self.head_dim - 1) // 2), self.heads_first)
        x = q.to(torch.promote_types(working_dtype(q.dtype), table.dtype))
        angles, norm = _fourier(self.head_dim, x), (2 / self.head_dim) ** 0.5
        even, odd = norm * angles.cos(), -norm * angles.sin()
        cos, sin = table.to(x.dtype).unsqueeze(-4 if self.heads_first else -3).unbind(-2)
        real, imaginary = product(x, even.mT), product(x, odd.mT)
        # What is added to both parts of each wave; the mean and the alternating sum stay.
        more = real * (cos - 1) - imaginary * sin
        less = imaginary * (cos - 1) + real * sin
        return (x + product(more, even) + product(less, odd)).to(q.dtype)


def _fourier(head_dim: int, like: Tensor) -> Float[Tensor, "pairs d"]:
    """2πjm/d for the waves 0 < j < d/2; whole numbers are reduced before they are rounded."""
    j = torch.arange(1, (head_dim + 1) // 2, device=like.device)
    m = torch.arange(head_dim, device=like.device)
    turns = in_float64(j[:, None] * m % head_dim) / head_dim
    return (2 * torch.pi * turns).to(like.dtype).to(like.device)
