"""Temperatures of the scores: constant, or growing with the logarithm of the context."""

from abc import abstractmethod
from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from posenc._rounding import rounded
from posenc.arguments import check_number, check_whole
from posenc.encodings.scores.content import Content, OfContent
from posenc.encodings.shapes import Dtype, PairFactors, Scores, WholeKeyRow, WholeQueryRow
from posenc.guards import floating, widest
from posenc.positions import checked


class QueryFactor(OfContent):
    """Scores times a factor of the query's position; a subclass defines ``factor``."""

    is_pairwise = True

    @abstractmethod
    def factor(self, seen: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The factor of a query that sees so many keys."""

    def table(
        self, q_positions: WholeQueryRow, k_positions: WholeKeyRow, *, dtype: Dtype = None
    ) -> PairFactors:
        """The factor of each query, the same for all keys; at position p it sees p + 1 of them."""
        q_positions = checked(q_positions, "q_positions").clamp(min=0).unsqueeze(-1)
        k_positions = checked(k_positions, "k_positions")
        factor = self.factor(q_positions.to(widest(q_positions.device)) + 1)
        factor = rounded(factor, floating(dtype))
        return factor.expand(*factor.shape[:-1], k_positions.shape[-1])

    def changed(self, scores: Scores, table: PairFactors, content: Content) -> Scores:
        return scores * table.unsqueeze(-3)


class Temperature(QueryFactor):
    """score · scale · max(1, ln(p + 1) / ln(trained_length)), with p the query's position.

    It is log-n scaling: softmax over p + 1 keys stays as sharp as over the trained ones. Without a
    trained length the factor is constant, as (0.1 · mscale · ln s + 1)² of DeepSeek's YaRN.

    Args:
        trained_length: The length up to which nothing changes; ``None`` for a constant.

    Reference:
        Chiang & Cholak 2022, "Overcoming a Theoretical Limitation of Self-Attention"
        (arXiv:2202.12172); clipped, as in Qwen (``use_logn_attn``) and ReRoPE.

    Example:
        >>> Temperature(heads=1, trained_length=4).table(torch.tensor([3, 15]), torch.tensor([0]))
        tensor([[1.],
                [2.]])
    """

    def __init__(self, heads: int, trained_length: int | None = None, *, scale: float = 1.0):
        super().__init__()
        check_whole(heads=heads)
        check_number(scale=scale)
        if trained_length is not None:
            check_whole(2, trained_length=trained_length)  # its logarithm divides
        self.heads, self.trained_length, self.scale = heads, trained_length, scale
        self.is_relative = trained_length is None

    def factor(self, seen: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """scale · max(1, ln(seen) / ln(trained_length))"""
        if self.trained_length is None:
            return self.scale * torch.ones_like(seen)
        return self.scale * (seen.log() / log(self.trained_length)).clamp(min=1)


class LogTemperature(QueryFactor):
    """score · (1 + alpha · ln(max(1, (p + 1) / floor))), with p the query's position.

    Args:
        floor: The length up to which nothing changes, ``log_scaling_n_floor`` of Inkling.
        alpha: How fast scores grow, ``log_scaling_alpha`` there.

    Reference:
        ``InklingAttention`` in transformers, of Inkling and Inkling 2.

    Example:
        >>> LogTemperature(1, floor=4).table(torch.tensor([3, 7, 15]), torch.tensor([0])).flatten()
        tensor([1.0000, 1.0693, 1.1386])
    """

    def __init__(self, heads: int, floor: int = 128_000, alpha: float = 0.1):
        super().__init__()
        check_whole(heads=heads, floor=floor)
        check_number(alpha=alpha)
        self.heads, self.floor, self.alpha = heads, floor, alpha

    def factor(self, seen: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """1 + alpha · ln(max(1, seen / floor))"""
        return 1 + self.alpha * (seen / self.floor).clamp(min=1).log()
