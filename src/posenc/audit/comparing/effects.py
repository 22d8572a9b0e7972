"""What differing bits of q and k do to scores and to attention."""

from dataclasses import dataclass

import torch
from torch import Tensor

QUERIES = 64
"""So many queries, evenly spread and the last among them, look at all keys before them."""


@dataclass(frozen=True)
class Effect:
    """The change of scores and softmax from one implementation to the other."""

    content: str  # whose q and k
    tokens: int  # how many
    score: float  # largest change of a score
    spread: float  # standard deviation of the scores, to compare with
    weight: float  # largest change of an attention weight
    divergence: float  # largest Kullback–Leibler divergence of a row of weights, in nats


def effect(
    content: str, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], scale: float
) -> Effect:
    """Causal attention of both, in float64 from the rotated q and k on."""
    seq = one[0].shape[2]
    rows = torch.linspace(0, seq - 1, min(QUERIES, seq)).round().long().unique()
    shown = torch.arange(seq) <= rows[:, None]
    a, b = (_scores(q, k, rows) * scale for q, k in (one, other))
    log_a, log_b = (s.masked_fill(~shown, -torch.inf).log_softmax(-1) for s in (a, b))
    terms = torch.where(shown, log_a.exp() * (log_a - log_b), 0.0)
    return Effect(
        content,
        seq,
        (a - b)[:, shown].abs().max().item(),
        a[:, shown].std().item(),
        (log_a.exp() - log_b.exp()).abs().max().item(),
        max(terms.sum(-1).max().item(), 0.0),
    )


def _scores(q: Tensor, k: Tensor, rows: Tensor) -> Tensor:
    queries, keys = q[0][:, rows].double(), k[0].double()
    return queries @ keys.repeat_interleave(len(queries) // len(keys), 0).mT
