"""Rotary and more: xPos, the first tokens of LongRoPE, and the values of DeepSeek V4."""

from decimal import localcontext

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import MOST, check_positive_number, check_whole
from posenc.encodings.queries_keys.rotary import AroundRotary, Rotary, check_alike
from posenc.encodings.queries_keys.rotation import rotate_heads, rotation_table
from posenc.encodings.shapes import CosSin, CosSinRows, Dtype, Heads, Row
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


class StartTokenRotary(AroundRotary):
    """Rows of ``start`` for positions below ``count``, and of ``rotary`` from there on.

    LongRoPE leaves the first n̂ tokens unscaled, without the attention factor.

    Args:
        rotary: The encoding of all later tokens, extended.
        start: That of the first tokens, with other frequencies and nothing else.
        count: n̂, the number of first tokens.

    Reference:
        Ding et al. 2024, "LongRoPE", equation 2 with n̂ (arXiv:2402.13753);
        ``MixedLongRoPEScaledRotaryEmbedding`` of microsoft/LongRoPE.

    Example:
        >>> from posenc.frequencies import Geometric, LongRoPE
        >>> plain = Geometric(4)
        >>> longrope = LongRoPE(plain, (1.0, 1.0), (1.0, 32.0), 4096, factor=32.0)
        >>> extended = StartTokenRotary(Rotary(longrope.at(9000)), Rotary(plain), count=4)
        >>> torch.equal(extended.table([3]), Rotary(plain).table([3]))
        True
    """

    is_relative = False
    reads_rows = True

    def __init__(self, rotary: Rotary, start: Rotary, count: int):
        super().__init__(rotary)
        check_whole(0, count=count)
        check_alike(rotary, start)
        self.start, self.count = start, count

    def table(self, positions: Row, *, dtype: Dtype = None) -> CosSin:
        positions = checked(positions, reals=True)
        first = (positions < self.count)[..., None, None]
        near = self.start.table(positions, dtype=dtype)
        return torch.where(first, near, self.rotary.table(positions, dtype=dtype))

    def encode_both(
        self,
        q: Heads,
        k: Heads,
        table: CosSinRows,
        positions: Int64[Tensor, "..."] | None = None,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        return self.rotary.encode_both(q, k, table, positions, out=out)


class CounterRotary(AroundRotary):
    """Queries, keys and values are rotated as by ``rotary``, and the output by the opposite angle.

    out_i = R(−p_i) Σ_j w_ij R(p_j) v_j = Σ_j w_ij R(p_j − p_i) v_j

    So values too are relative. DeepSeek V4 has one vector for key and value: ``attention(q, kv,
    kv)``, with ``keys_encoded=True`` for what its cache holds.

    Reference:
        DeepSeek-AI 2026, DeepSeek-V4, ``DeepseekV4Attention`` in transformers; Su's
        "VO-RoPE", which turns values and output (kexue.fm/archives/10862), beside rotary.

    Example:
        >>> import torch
        >>> from posenc import Positional, Rotary, attention
        >>> counter = CounterRotary(Rotary(8, pairing="interleaved"))
        >>> q, kv = torch.randn(1, 4, 5, 8), torch.randn(1, 1, 5, 8)
        >>> attention(q, kv, kv, positional=Positional(queries_keys=counter)).shape
        torch.Size([1, 4, 5, 8])
    """

    changes_values = changes_output = True

    def table(self, positions: Row, *, dtype: Dtype = None) -> CosSin:
        return self.rotary.table(positions, dtype=dtype)

    def encode_values(self, v: Heads, table: CosSinRows) -> Heads:
        """``v`` rotated as keys are."""
        return self.rotary.encode_keys(v, table)

    def encode_output(self, out: Heads, table: CosSinRows) -> Heads:
        """``out`` rotated by the opposite angle."""
        rotary, back = self.rotary, self.rotary.layout.backwards()
        return rotate_heads(out, table, back, rotary.head_dim, rotary.rotated_dim)
