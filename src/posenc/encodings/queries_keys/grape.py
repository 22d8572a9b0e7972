"""GRAPE: each head turns in a plane of its own, which it learns."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotation import check_key_heads, check_rows
from posenc.encodings.shapes import Device, Dtype, Heads, Row
from posenc.encodings.told import Drawn, arguments_told
from posenc.guards import floating
from posenc.numerics.product import products
from posenc.positions import checked, in_float64


class GRAPE(Drawn, QueryKeyEncoding):
    """x → exp(p ω L) x,  L = a bᵀ − b aᵀ,  with learned a and b for each head.

    By Rodrigues' formula, with s = √(|a|² |b|² − (a · b)²) and t = p ω s, it is x + (sin t / s) L x
    + ((1 − cos t) / s²) L² x: a rotation by t in the plane of a and b. Norms stay, and products
    depend on distance alone. ``generators`` are a and b, ``[2, heads, head_dim]``. Angles are
    float64.

    Args:
        head_dim: Width of a head, 2 or more.
        heads: Number of key heads; query heads share the plane of theirs.
        speed: ω.
        std: Standard deviation of the normal initialization of a and b; head_dim^−½ if not given.

    Reference:
        Zhang et al. 2025, "Group Representational Position Encoding" (arXiv:2512.07805), with the
        closed form as in model-architectures/GRAPE.

    Example:
        >>> grape, q, k = GRAPE(8, heads=2), torch.randn(1, 4, 5, 8), torch.randn(1, 2, 5, 8)
        >>> turned, _ = grape(q, k)
        >>> torch.allclose(turned.norm(dim=-1), q.norm(dim=-1), atol=1e-5)
        True
    """

    is_relative = takes_reals = True

    def __init__(
        self,
        head_dim: int,
        heads: int,
        speed: float = 1.0,
        *,
        std: float | None = None,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(2, head_dim=head_dim)
        check_whole(heads=heads)
        self.std = head_dim**-0.5 if std is None else std
        check_positive_number(speed=speed, std=self.std)
        self.head_dim, self.heads, self.speed = head_dim, heads, speed
        self.heads_first = heads_first
        shape = (2, heads, head_dim)
        self.generators = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def table(self, positions: Row, *, dtype: Dtype = None) -> Float[Tensor, "*batch seq 2 heads"]:
        """(sin t) / s and (1 − cos t) / s² for every head."""
        positions = checked(positions, reals=True)
        a, b = in_float64(self.generators)
        tiny, length = torch.finfo(torch.float64).tiny, a.square().sum(-1, keepdim=True)
        # What of b is not along a: squares of nearly parallel vectors would cancel.
        beside = b - (a * b).sum(-1, keepdim=True) / length.clamp(min=tiny) * a
        speed = (length * beside.square()).sum(-1).clamp(min=tiny).sqrt()
        angles = in_float64(positions).unsqueeze(-1) * (self.speed * speed)
        across = 2 * (angles / 2).sin().square()  # 1 − cos, which loses no digits near 0
        factors = angles.sin() / speed, across / speed.square()
        return torch.stack(factors, dim=-2).to(floating(dtype)).to(positions.device)

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 heads"]) -> Heads:
        check_rows(q, table, (2, self.heads), self.heads_first)
        x = q if self.heads_first else q.transpose(-2, -3)
        group = x.shape[-3] // self.heads
        wide = torch.promote_types(working_dtype(q.dtype), table.dtype)
        # [*batch, 2, heads, seq, 1]
        factors = table.to(wide).movedim(-3, -1).repeat_interleave(group, -2)
        once, twice = factors.unsqueeze(-1).unbind(-4)
        x = x.to(wide)
        a, b = self.generators.to(wide).repeat_interleave(group, 1).unsqueeze(-2)
        turned = _generated(x, a, b)
        made = (x + once * turned + twice * _generated(turned, a, b)).to(q.dtype)
        return made if self.heads_first else made.transpose(-2, -3)

    def encode_keys(self, k: Heads, table: Float[Tensor, "*rows 2 heads"]) -> Heads:
        check_key_heads(k, self.heads, self.heads_first)
        return self.encode_queries(k, table)

    def extra_repr(self) -> str:
        return arguments_told(self, std=self.head_dim**-0.5)


def _generated(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """L x = a (b · x) − b (a · x)"""
    return a * products(x, b) - b * products(x, a)
