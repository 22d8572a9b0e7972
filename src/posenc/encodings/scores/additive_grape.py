"""Additive GRAPE: ALiBi's slopes, steeper or flatter by what a query and a key say."""

from collections.abc import Sequence
from math import expm1, log
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.scores.content import Content, OfContent
from posenc.encodings.shapes import Device, Dtype, KeyRow, PairFactors, QueryRow, Scores
from posenc.numerics import slopes
from posenc.numerics.product import products
from posenc.positions import float_distances

Gate = Literal["query", "key"]

EPSILON = 1e-6


class AdditiveGRAPE(OfContent):
    """score(q, k) −= d · m_h · ω_h · ( softplus(v_h · q / √w) + softplus(u_h · k / √w) )

    with d = max(q_position − k_position, 0), w the width of a head, m_h the slopes of ``ALiBi``,
    ω_h > 0 learned for each head and u_h, v_h learned directions of length 1. With one gate its
    softplus stands alone. Where u and v meet nothing, it is ALiBi with slopes m_h · ω_h · ln 2 a
    gate.

    Args:
        omega: ω of every head at first.
        std: Standard deviation of u and v at first, before they are brought to length 1;
            head_dim^−½ if not given.

    Reference:
        Zhang et al. 2025, "Group Representational Position Encoding", additive GRAPE
        (arXiv:2512.07805); ``QueryKeyGatedAdditiveBias`` in model-architectures/GRAPE.

    Example:
        >>> grape, q, k = AdditiveGRAPE(1, 2), torch.zeros(1, 1, 3, 2), torch.ones(1, 1, 3, 2)
        >>> _ = nn.init.zeros_(grape.u)  # now both gates are ln 2, and the slope is 2^-8
        >>> grape(torch.zeros(1, 1, 3, 3), q=q, k=k).detach()[0, 0, 2]
        tensor([-0.0108, -0.0054,  0.0000])
    """

    is_relative = is_pairwise = takes_reals = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        *,
        gates: Sequence[Gate] = ("query", "key"),
        omega: float = 1.0,
        std: float | None = None,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim)
        check_positive_number(omega=omega)
        check_choice(get_args(Gate), **{f"gates[{n}]": gate for n, gate in enumerate(gates)})
        self.heads, self.head_dim, self.first_omega = heads, head_dim, omega
        self.gates = tuple(dict.fromkeys(gates))
        self.std = head_dim**-0.5 if std is None else std
        self.slopes = slopes.alibi(heads)
        factory = {"device": device, "dtype": dtype}
        self.omega = nn.Parameter(torch.empty(heads, **factory))
        self.u = self.v = None
        if "key" in gates:
            self.u = nn.Parameter(torch.empty(heads, head_dim, **factory))
        if "query" in gates:
            self.v = nn.Parameter(torch.empty(heads, head_dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw u and v from N(0, std²), and set ω to what it began as."""
        # The inverse of softplus, which for large numbers is the number itself.
        first = log(expm1(self.first_omega)) if self.first_omega < 30 else self.first_omega
        nn.init.constant_(self.omega, first)
        for direction in (self.u, self.v):
            if direction is not None:
                nn.init.normal_(direction, std=self.std)

    def table(
        self, q_positions: QueryRow, k_positions: KeyRow, *, dtype: Dtype = None
    ) -> PairFactors:
        """d of every pair."""
        return float_distances(q_positions, k_positions, dtype or torch.float32).clamp(min=0)

    def changed(self, scores: Scores, table: PairFactors, content: Content) -> Scores:
        rate = 0.0
        if self.v is not None:
            rate = rate + self._gate(content.q, self.v).unsqueeze(-1)
        if self.u is not None:
            rate = rate + self._gate(content.keys, self.u).unsqueeze(-2)
        steep = scores.new_tensor(self.slopes) * F.softplus(self.omega.to(scores.dtype))
        return scores - table.unsqueeze(-3) * steep[:, None, None] * rate

    def _gate(
        self, x: Float[Tensor, "*batch heads seq head_dim"], direction: Float[Tensor, "heads _"]
    ) -> Float[Tensor, "*batch heads seq"]:
        """softplus of the content along the direction of each head, over √head_dim."""
        along = F.normalize(direction.to(x.dtype), dim=-1, eps=EPSILON)
        return F.softplus(products(x, along.unsqueeze(-2)).squeeze(-1) * self.head_dim**-0.5)
