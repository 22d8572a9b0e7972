"""Learned rotations of points by angles: RoPE-Mixed and STRING."""

from abc import abstractmethod
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_multiple, check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotation import check_rows, rotate_each_head, rotate_heads
from posenc.encodings.shapes import CosSinRows, Device, Dtype, Heads
from posenc.encodings.told import Drawn
from posenc.frequencies import Geometric, Powers
from posenc.guards import floating
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.product import product
from posenc.positions import Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class LearnedRotation(QueryKeyEncoding):
    """Heads rotated at points by what is learned, in float64."""

    is_relative = takes_reals = True

    def __init__(self, head_dim: int, axes: int, heads_first: bool, least: int = 2):
        super().__init__()
        check_whole(least, head_dim=head_dim)
        check_whole(axes=axes)
        self.head_dim, self.axes, self.heads_first = head_dim, axes, heads_first

    def points(self, positions: Tensor | Positions) -> Float[Tensor, "*shape axes"]:
        """``positions`` as float64, on the CPU where their device has none."""
        points, _ = among_places(checked_points(positions, self.axes))
        return in_float64(points)


class LearnedAngles(LearnedRotation):
    """Pairs rotated by learned angles."""

    cos_axis = -2
    """The axis of a table that tells cosines from sines."""

    @abstractmethod
    def angles(self, points: Float[Tensor, "*shape axes"]) -> Float[Tensor, "*shape _"]:
        """The angle of each pair at each point."""

    def table(self, positions: Tensor | Positions, *, dtype: Dtype = None) -> Float[Tensor, "..."]:
        angles = self.angles(self.points(positions))
        table = torch.stack((angles.cos(), angles.sin()), dim=self.cos_axis)
        return table.to(floating(dtype)).to(next(self.parameters()).device)


class RoPEMixed(LearnedAngles):
    """Pair i of head h turns by x · f_x[h, i] + y · f_y[h, i], with learned frequencies.

    At first half of the pairs of a head look in a random direction and half across it, with
    magnitudes base^(−4i/d). Positions are ``[*batch, seq, 2]`` with (y, x), as of
    ``posenc.positions.grid(height, width)``. ``frequencies`` are ``[2, heads, pairs]``, those of x
    first, as in the authors' checkpoints. Angles are float64.

    Args:
        head_dim: d, a multiple of 4.
        heads: Number of heads; keys need as many, since each head has its own frequencies.
        base: 10 in the paper.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 9
        (arXiv:2403.13298); pairs are interleaved as in ``models/vit_rope.py`` of naver-ai/rope-vit.

    Example:
        >>> from posenc.positions import grid
        >>> RoPEMixed(16, heads=3).table(grid(2, 5)).shape
        torch.Size([10, 2, 3, 8])
    """

    cos_axis = -3

    def __init__(
        self,
        head_dim: int,
        heads: int,
        base: float = 10.0,
        *,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, 2, heads_first)
        check_whole(heads=heads)
        check_positive_number(base=base)
        check_multiple(4, head_dim=head_dim)
        self.heads, self.base = heads, base
        shape = (2, heads, head_dim // 2)
        self.frequencies = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        angles = torch.rand(self.heads, 1, device=self.frequencies.device) * 2 * pi
        directions = torch.cat((angles, angles + pi / 2), dim=-1)
        powers = Powers(self.base, tuple(range(0, self.head_dim, 4)), self.head_dim)
        magnitudes = powers.float32("float32").to(angles.device)
        for axis, along in enumerate((torch.cos, torch.sin)):  # x, y
            self.frequencies[axis] = (along(directions)[..., None] * magnitudes).flatten(1)

    @torch.no_grad()
    def load(self, frequencies: Float[Tensor, "2 *rest"]) -> None:
        """Load one layer of a checkpoint, ``[2, heads · pairs]`` or ``[2, heads, pairs]``, x first.

        Of rope-vit that is ``freqs[:, layer]``, and the same of timm's ``rope.freqs`` with
        ``grid_indexing="xy"``, as its published models have it; of ``"ij"`` pass ``freqs.flip(0)``.
        """
        self.frequencies.copy_(frequencies.reshape(self.frequencies.shape))

    def angles(self, points: Float[Tensor, "*shape 2"]) -> Float[Tensor, "*shape heads pairs"]:
        """x · f_x + y · f_y."""
        y, x = points[..., None, None, :].unbind(-1)
        along_x, along_y = in_float64(self.frequencies)
        return y * along_y + x * along_x

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 heads pairs"]) -> Heads:
        return rotate_each_head(q, table, pairing="interleaved", heads_first=self.heads_first)


class CayleySTRING(LearnedAngles):
    """z → RoPE(p) P z: pair i of P z turns by Σ_a p_a f_a,i, with an orthogonal matrix P.

    P = (I − S)(I + S)⁻¹ with a skew matrix S. The frequencies f (``[axes, d/2]``) are learned, and
    so is S, the upper triangle of ``skew`` less its transpose. P serves queries and keys of all
    heads, so products depend on the difference of points, and norms are kept. At first P is near
    the identity. Angles are float64.

    Args:
        head_dim: d, even.
        base: The frequencies begin as base^(−2i/d) along each axis.
        std: Standard deviation of the upper triangle of S at first; the paper does not say it.

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


class CirculantSTRING(Drawn, LearnedAngles):
    """z → exp(Σ_a p_a (C_a − C_aᵀ)) z with learned circulant matrices C_a.

    Fourier waves diagonalize all of them: wave j of z, 0 < j < d/2, turns by −2 Σ_a p_a Σ_m c_a,m
    sin(2πjm/d), where c_a is the first column of C_a (``columns``, ``[axes, d]``); its mean, and
    for even d its alternating sum, stay. Products depend on the difference of points, and norms are
    kept. Angles are float64.

    Args:
        head_dim: d, 3 or more.
        std: Standard deviation of c at first; the paper does not say it.

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
