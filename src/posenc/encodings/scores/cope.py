"""Contextual position encoding: positions that count what the query finds worth counting."""

import torch
from torch import nn

from posenc.arguments import check_whole
from posenc.encodings.scores.content import Content, OfDistance, sums_after_key
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.numerics.product import products


class CoPE(OfDistance):
    """The query's product with a learned vector, chosen by a count of gates instead of tokens.

    g_ij = σ(score_ij),  p_ij = min(Σ_{l = j … i} g_il, max_positions − 1)
    score_ij += q_i · e[p_ij],  e[p] interpolated linearly between ⌊p⌋ and ⌈p⌉

    It is causal: a key after its query opens no gate. Gates come from the scores as they arrive,
    so put it first. All heads share the vectors. For documents and padding see
    ``posenc.encodings.scores.content``.

    The paper's listing adds q·e to scaled scores, as here; the authors' code scales q·e too
    (``scaled``). Its gates may have keys of their own, there of the hidden state
    (``separate_keys``). For gates by other products pass their logits to ``encode(..., gates=)``.

    Args:
        max_positions: Number of vectors; counts past the last stay there.
        scaled: Whether q·e is multiplied with the scale of the scores, as 1/√head_dim.
        separate_keys: Whether gates have keys of their own, by a map that begins as the identity.

    Reference:
        Golovneva et al. 2024, "Contextual Position Encoding" (arXiv:2405.18719), with the listing
        in its appendix; ``projects/cope`` of facebookresearch/RAM, where the options are
        ``--cope-sep-key``, ``--cope-val-gates`` and ``--cope-nodiv``.

    Example:
        >>> cope, q = CoPE(heads=2, head_dim=8, max_positions=16), torch.randn(1, 2, 5, 8)
        >>> cope(q @ q.mT / 8**0.5, q=q).shape
        torch.Size([1, 2, 5, 5])
    """

    def __init__(
        self,
        heads: int,
        head_dim: int,
        max_positions: int,
        *,
        scaled: bool = False,
        separate_keys: bool = False,
        std: float = 0.0,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, max_positions=max_positions)
        self.heads, self.head_dim, self.max_positions = heads, head_dim, max_positions
        self.scaled, self.separate_keys, self.std = scaled, separate_keys, std
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(max_positions, head_dim, **factory))
        self.key_maps = None
        if separate_keys:
            self.key_maps = nn.Parameter(torch.empty(heads, head_dim, head_dim, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw every vector from N(0, std²), and make the maps of keys the identity."""
        nn.init.normal_(self.weight, std=self.std)
        if self.key_maps is not None:
            self.key_maps.copy_(torch.eye(self.head_dim, device=self.key_maps.device))

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        gates = content.get("gates")
        if gates is None and self.key_maps is not None:
            gates = products(content.q, products(content.keys, self.key_maps)) * content.scale
        positions = self.positions(scores if gates is None else gates, table)
        # Padding may hold NaN, which is no index; what it gives is masked.
        low = positions.floor().long().clamp(0, self.max_positions - 1)
        high = (low + 1).clamp(max=self.max_positions - 1)
        at = products(content.q, self.weight)
        between = torch.lerp(at.gather(-1, low), at.gather(-1, high), positions - low)
        return scores + (content.scale if self.scaled else 1.0) * between

    def positions(self, scores: Scores, table: Distances) -> Scores:
        """p_ij: how much a query counts from a key up to itself."""
        gates = torch.where((table >= 0).unsqueeze(-3), scores.sigmoid(), 0)
        return (gates + sums_after_key(gates, table)).clamp(max=self.max_positions - 1)
