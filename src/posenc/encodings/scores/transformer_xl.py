"""Transformer-XL: queries meet sinusoids of the distance, and keys a preference of their own."""

import torch
from torch import Tensor, nn

from posenc.arguments import check_multiple, check_whole
from posenc.encodings.scores.content import Content, OfDistance, picked
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.encodings.told import Drawn
from posenc.guards import may_look
from posenc.numerics.product import products


class TransformerXL(Drawn, OfDistance):
    """score(q, k) += ( u · k + (q + v) · W R[q − k] ) · scale

    so that with the content it is (q + u) · k + (q + v) · W R[q − k], times 1/√head_dim. R[d] is
    the sinusoid [sin | cos] of the distance, u and v are learned for each head, and W is a linear
    map. Load a checkpoint's ``r_w_bias``, ``r_r_bias`` and ``r_net.weight`` as ``u``, ``v`` and
    ``weight``.

    Args:
        dim: Width of the sinusoids; heads · head_dim if not given.
        clamp_len: The distance from which on all are one, on either side, as the authors evaluate
            beyond the trained length.

    Reference:
        Dai et al. 2019, "Transformer-XL", section 3.3 (arXiv:1901.02860);
        ``pytorch/mem_transformer.py`` of kimiyoung/transformer-xl.

    Example:
        >>> xl, x = TransformerXL(heads=2, head_dim=8), torch.randn(1, 2, 5, 8)
        >>> xl(x @ x.mT / 8**0.5, q=x, k=x).shape
        torch.Size([1, 2, 5, 5])
    """

    is_pairwise = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        dim: int | None = None,
        *,
        base: float = 10_000.0,
        clamp_len: int | None = None,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim)
        if clamp_len is not None:
            check_whole(clamp_len=clamp_len)
        self.heads, self.head_dim, self.std = heads, head_dim, std
        self.dim = heads * head_dim if dim is None else dim
        self.base, self.clamp_len = base, clamp_len
        check_multiple(2, dim=self.dim)
        self.sinusoid = Sinusoidal(self.dim, base, convention="concatenated")
        factory = {"device": device, "dtype": dtype}
        self.u = nn.Parameter(torch.empty(heads, head_dim, **factory))
        self.v = nn.Parameter(torch.empty(heads, head_dim, **factory))
        self.weight = nn.Parameter(torch.empty(heads * head_dim, self.dim, **factory))
        self.reset_parameters()

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        if self.clamp_len is not None:
            table = table.clamp(-self.clamp_len, self.clamp_len)
        u, v = (each.to(scores.dtype).unsqueeze(-2) for each in (self.u, self.v))
        of_distance = self._by_distance(content.q + v, table)
        return scores + (products(u, content.keys) + of_distance) * content.scale

    def _by_distance(self, q: Tensor, table: Tensor) -> Tensor:
        """q · W R[distance] for every pair."""
        if not may_look(table):  # a graph does not know how many distances there are
            rows = self._rows(table, q.dtype).movedim(-2, -4)
            return products(q.unsqueeze(-2), rows).squeeze(-2)
        distances, index = _distinct(table)
        rows = self._rows(distances, q.dtype).movedim(-2, -3)
        return picked(products(q, rows), index)

    def _rows(self, distances: Tensor, dtype: torch.dtype) -> Tensor:
        """W R[distance], ``[*shape, heads, head_dim]``."""
        sinusoids = self.sinusoid.table(distances, dtype=dtype)
        return products(sinusoids, self.weight).unflatten(-1, (self.heads, self.head_dim))


def _distinct(table: Tensor) -> tuple[Tensor, Tensor]:
    """The distances in ``table``, and the place of each of its entries among them."""
    if table.numel():
        low, high = map(int, table.aminmax())
        # Rows without gaps, as most are, need no sorting.
        if high - low <= 2 * sum(table.shape[-2:]):
            return torch.arange(low, high + 1, device=table.device), table - low
    return table.unique(return_inverse=True)
