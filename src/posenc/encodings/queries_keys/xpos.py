"""xPos: a rotary encoding whose products fade with distance."""

from decimal import localcontext

import torch
from jaxtyping import Float
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import MOST, check_positive_number, check_whole
from posenc.encodings.queries_keys.rotary import AroundRotary, Rotary
from posenc.encodings.queries_keys.rotation import rotation_table
from posenc.encodings.shapes import Dtype, Heads, Row
from posenc.frequencies.schedule import PRECISION, exact
from posenc.guards import floating, has_float64, may_look
from posenc.positions import checked, floats

LARGEST_LOG = 80.0
"""The logarithm of a factor that float32 holds, and its inverse too."""


class XPos(AroundRotary):
    """Rotation, with queries multiplied by ζ_i^(p/B) and keys by ζ_i^(−p/B).

    ζ_i = (2i/d + γ) / (1 + γ)

    The product of a query at m and a key at n has ζ_i^((m − n)/B) in it, which fades with distance
    where the key lies behind the query: this is for causal attention. With the paper's numbers the
    factors leave float32 some 30,000 positions from the origin, and float16 some 4,000.

    Args:
        rotary: The rotation; its rotated width is d.
        scale_base: B; 512 in the paper.
        gamma: γ; 0.4 in the paper.
        origin: Position where all factors are 1; no product depends on it. The middle of the
            context keeps factors closest to 1.

    Reference:
        Sun et al. 2022, "A Length-Extrapolatable Transformer", algorithm 1 (arXiv:2212.10554).

    Example:
        >>> xpos = XPos(Rotary(4, pairing="interleaved"))
        >>> for_queries, for_keys = xpos.table(torch.tensor([512])).split(2, dim=-2)
        >>> for_queries.norm(dim=-2), for_keys.norm(dim=-2)  # ζ and 1/ζ after 512 positions
        (tensor([[0.2857, 0.6429]]), tensor([[3.5000, 1.5556]]))
    """

    def __init__(
        self, rotary: Rotary, scale_base: float = 512.0, gamma: float = 0.4, origin: int = 0
    ):
        super().__init__(rotary)
        check_positive_number(scale_base=scale_base, gamma=gamma)
        check_whole(-MOST, origin=origin)
        self.scale_base, self.gamma, self.origin = scale_base, gamma, origin
        pairs = rotary.rotated_dim // 2
        with localcontext(PRECISION):
            zetas = [(exact(i) / pairs + exact(gamma)) / (1 + exact(gamma)) for i in range(pairs)]
            # ln ζ / B: what one position adds to the logarithm of a query's factor.
            self.rates = tuple(float(zeta.ln() / exact(scale_base)) for zeta in zetas)

    def table(self, positions: Row, *, dtype: Dtype = None) -> Float[Tensor, "*batch seq 4 pairs"]:
        """cos and sin for queries, then cos and sin for keys, each rounded once."""
        positions = checked(positions, reals=True)
        if not has_float64(positions.device):
            return self.table(positions.to("cpu"), dtype=dtype).to(positions.device)
        factor = self.rotary.frequencies.attention_factor
        turns = rotation_table(self.rotary.sincos, positions, torch.float64, factor)
        rates = torch.tensor(self.rates, dtype=torch.float64, device=positions.device)
        away = floats(positions - self.origin if self.origin else positions, torch.float64)
        logarithms = (away[..., None] * rates).unsqueeze(-2)
        if may_look(logarithms) and logarithms.numel() and logarithms.abs().max() > LARGEST_LOG:
            raise ValueError(f"A factor so far from origin={self.origin} overflows float32.")
        both = torch.cat((turns * logarithms.exp(), turns * (-logarithms).exp()), dim=-2)
        return rounded(both, floating(dtype))

    def encode_queries(
        self, q: Heads, table: Float[Tensor, "*rows 4 pairs"], *, out: Tensor | None = None
    ) -> Heads:
        """``q`` rotated and multiplied by ζ^(p/B); ``out=q`` changes it in place."""
        return self.rotary.encode_queries(q, table[..., :2, :], out=out)

    def encode_keys(
        self, k: Heads, table: Float[Tensor, "*rows 4 pairs"], *, out: Tensor | None = None
    ) -> Heads:
        """``k`` rotated and multiplied by ζ^(−p/B)."""
        return self.rotary.encode_queries(k, table[..., 2:, :], out=out)
