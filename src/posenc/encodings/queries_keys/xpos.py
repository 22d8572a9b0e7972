"""xPos: a rotary encoding whose products fade with distance."""

from decimal import localcontext

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import MOST, check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.by_profile import refuse_profile
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import check_rows, rotation_table
from posenc.frequencies.schedule import PRECISION, exact
from posenc.guards import demand, floating, graph_looks, has_float64, may_look
from posenc.positions import Coordinates, Positions, checked, floats, in_float64

LARGEST_LOG = 80.0
"""exp(80) and its inverse are float32 numbers with room for content."""

LARGEST_LOG_OF_HALF = 11.0
"""exp(11) is a float16 number, and there are few beyond it."""


class XPos(QueryKeyEncoding):
    """Rotation, with queries multiplied by ζ_i^(p/B) and keys by ζ_i^(−p/B).

    ζ_i = (2i/d + γ) / (1 + γ)

    The product of a query at m and a key at n has ζ_i^((m − n)/B) in it, which fades with distance
    where the key lies behind the query: this is an encoding for causal attention. The factors
    depend on the position alone, never on the length, so decoding equals prefill.

    Args:
        rotary: The rotation; its rotated width is d.
        scale_base: B; 512 in the paper.
        gamma: γ; 0.4 in the paper.
        origin: Position where all factors are 1; no product depends on it. The middle of the
            context keeps factors closest to 1.

    Raises:
        ValueError: ``scale_base`` or ``gamma`` is not positive.

    Reference:
        Sun et al. 2022, "A Length-Extrapolatable Transformer", algorithm 1 (arXiv:2212.10554).

    Example:
        >>> xpos = XPos(Rotary(4, pairing="interleaved"))
        >>> for_queries, for_keys = xpos.table(torch.tensor([512])).split(2, dim=-2)
        >>> for_queries.norm(dim=-2), for_keys.norm(dim=-2)  # ζ and 1/ζ after 512 positions
        (tensor([[0.2857, 0.6429]]), tensor([[3.5000, 1.5556]]))
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self, rotary: Rotary, scale_base: float = 512.0, gamma: float = 0.4, origin: int = 0
    ):
        super().__init__()
        if not isinstance(rotary, Rotary):
            raise TypeError(f"rotary is {rotary!r}; pass a Rotary, as Rotary(64).")
        refuse_profile("XPos", rotary)
        check_positive_number(scale_base=scale_base, gamma=gamma)
        check_whole(-MOST, origin=origin)
        self.rotary, self.scale_base, self.gamma, self.origin = rotary, scale_base, gamma, origin
        self.head_dim, self.heads_first = rotary.head_dim, rotary.heads_first
        pairs = len(rotary.sincos)
        with localcontext(PRECISION):
            zetas = [(exact(i) / pairs + exact(gamma)) / (1 + exact(gamma)) for i in range(pairs)]
            # ln ζ / B: what one position adds to the logarithm of a query's factor.
            self.rates = tuple(float(zeta.ln() / exact(scale_base)) for zeta in zetas)
        self.reach = min(int(LARGEST_LOG / max(abs(rate) for rate in self.rates)), MOST)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 4 pairs"]:
        """cos and sin for queries, then cos and sin for keys, each rounded once.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: A factor would leave float32, or float16 where that is ``dtype``, at so
                large a distance from the origin.
        """
        positions = checked(positions, reals=True)
        numbers = in_float64(positions) if isinstance(positions, Coordinates) else positions
        self._check_range(numbers, floating(dtype))
        if not has_float64(positions.device):
            return self.table(positions.to("cpu"), dtype=dtype).to(positions.device)
        turns = rotation_table(
            self.rotary.sincos, positions, torch.float64, self.rotary.frequencies.attention_factor
        )
        rates = torch.tensor(self.rates, dtype=torch.float64, device=positions.device)
        away = floats(positions - self.origin if self.origin else numbers, torch.float64)
        logarithms = (away[..., None] * rates).unsqueeze(-2)
        both = torch.cat((turns * logarithms.exp(), turns * (-logarithms).exp()), dim=-2)
        return rounded(both, floating(dtype))

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 4 pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated and multiplied by ζ^(p/B).

        Raises:
            ValueError: ``q`` is in float16, and a product is not.
        """
        check_rows(table, 4, len(self.rates), name="XPos")
        return self._finite(self.rotary.encode_queries(q, table[..., :2, :]), q)

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 4 pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated and multiplied by ζ^(−p/B).

        Raises:
            ValueError: ``k`` is in float16, and a product is not.
        """
        check_rows(table, 4, len(self.rates), name="XPos")
        return self._finite(self.rotary.encode_keys(k, table[..., 2:, :]), k)

    def _finite(self, made: Tensor, content: Tensor) -> Tensor:
        """``made``, none of whose numbers became infinite."""
        if made.dtype is not torch.float16:
            return made
        told = (
            f"A product with a factor of XPos is beyond float16, so far from the origin "
            f"{self.origin}. Give content in bfloat16 or float32, set origin to the middle of the "
            f"context, or raise scale_base."
        )
        if graph_looks(made):
            demand(~made.isinf().any() | content.isinf().any(), told)
        elif may_look(made) and bool(made.isinf().any() & ~content.isinf().any()):
            raise ValueError(told)
        return made

    def _check_range(self, positions: Tensor, dtype: torch.dtype) -> None:
        name, reach = "float32", self.reach
        if dtype is torch.float16:
            name, reach = "float16", int(reach * (LARGEST_LOG_OF_HALF / LARGEST_LOG))
        if graph_looks(positions):
            apart = positions - self.origin
            near = ((apart <= reach) & (apart >= -reach)).all()
            beyond = f"A position is more than {reach} from the origin {self.origin}"
            demand(near, f"{beyond}; there a factor of XPos leaves {name}.")
        if not may_look(positions) or not positions.numel():
            return
        first, last = (end.item() for end in positions.aminmax())
        for position in (first, last):
            if abs(position - self.origin) > reach:
                raise ValueError(
                    f"Position {position} is {abs(position - self.origin)} from the origin "
                    f"{self.origin}; from {reach} on a factor of XPos leaves {name}. Set "
                    f"origin to the middle of the context, or raise scale_base."
                )

    def extra_repr(self) -> str:
        """The constants."""
        return f"scale_base={self.scale_base}, gamma={self.gamma}, origin={self.origin}"
