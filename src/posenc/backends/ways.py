"""The ways themselves, each ready to be called with queries, keys and values."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from posenc._guards import may_look
from posenc.backends.explicit import attend_explicitly, grouped
from posenc.backends.flex import attend_flexibly
from posenc.backends.specification import AttentionSpecification, Piece
from posenc.backends.strided import attend_in_blocks
from posenc.backends.toeplitz import Toeplitz
from posenc.backends.trainable import attend_and_learn
from posenc.encodings.base import ScoreBias, ScoreEncoding


@dataclass(frozen=True)
class Plain:
    """``scaled_dot_product_attention`` and nothing else."""

    why: str
    causal: bool
    name = "sdpa"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float, dropout: float) -> Tensor:
        return F.scaled_dot_product_attention(
            q, k, v, None, dropout, self.causal, scale=scale, enable_gqa=grouped(q, k)
        )


@dataclass(frozen=True)
class Dense:
    """``scaled_dot_product_attention`` with a mask of queries × keys."""

    why: str
    mask: Tensor
    name = "dense"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float, dropout: float) -> Tensor:
        mask = self.mask
        if mask.is_floating_point() and (q.device.type != "cpu" or q.dtype == torch.float64):
            mask = mask.to(q.dtype)
        return F.scaled_dot_product_attention(
            q, k, v, mask, dropout, scale=scale, enable_gqa=grouped(q, k)
        )


@dataclass(frozen=True)
class Strided:
    """Runs of queries and keys, the bias of each a vector seen as a matrix."""

    why: str
    pieces: tuple[Piece, ...] | None  # None: all queries and keys are one piece
    biases: tuple[Toeplitz, ...]
    offsets: tuple[int, ...]
    name = "strided"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float, dropout: float) -> Tensor:
        if self.pieces is None:
            return _piece(q, k, v, self.biases[0], self.offsets[0], scale, dropout)
        out = q.new_zeros(*q.shape[:-1], v.shape[-1])
        for piece, bias in zip(self.pieces, self.biases, strict=True):
            some_q = q[piece.batch, :, piece.queries]
            some_k, some_v = (t[piece.batch, :, piece.keys] for t in (k, v))
            out[piece.batch, :, piece.queries] = _piece(
                some_q, some_k, some_v, bias, piece.offset, scale, dropout
            )
        return out


@dataclass(frozen=True)
class Flex:
    """FlexAttention: the bias computed where a score is, on accelerators."""

    why: str
    encodings: tuple[ScoreBias, ...]
    specification: AttentionSpecification
    name = "flex"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float, dropout: float) -> Tensor:
        assert not dropout
        return attend_flexibly(q, k, v, self.encodings, self.specification, scale=scale)


@dataclass(frozen=True)
class Explicit:
    """Scores formed, encoded one after the other, and weighed: queries × keys in memory."""

    why: str
    encodings: tuple[tuple[ScoreEncoding, Tensor], ...]
    mask: Tensor | None
    name = "explicit"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float, dropout: float) -> Tensor:
        return attend_explicitly(
            q, k, v, self.encodings, self.mask, scale=scale, dropout=dropout
        ).heads


Plan = Plain | Dense | Strided | Flex | Explicit


def _piece(
    q: Tensor, k: Tensor, v: Tensor, bias: Toeplitz, offset: int, scale: float, dropout: float
) -> Tensor:
    if q.device.type != "cpu" and bias.values.dtype != q.dtype:
        bias = Toeplitz(bias.values.to(q.dtype), bias.highest)
    if bias.values.requires_grad and torch.is_grad_enabled():
        return attend_and_learn(q, k, v, bias, offset, scale=scale)
    q_len, k_len = q.shape[-2], k.shape[-2]
    # The cut-off counts on the key at distance 0, which every query must see.
    touched = may_look(q) and q.numel()
    if touched and offset >= 0 and offset + q_len <= k_len and bias.falls_far(k_len):
        bias = bias.cut_off(_largest_score(q, k, scale), k_len)
    return attend_in_blocks(q, k, v, bias, offset, scale=scale, dropout=dropout)


def _largest_score(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """A bound of |q · k| · scale for each query head, by the lengths of the longest."""
    with torch.no_grad():
        lengths = [t.float().norm(dim=-1).amax(-1) for t in (q, k)]
        keys = lengths[1].repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        return (lengths[0] * keys).amax(0) * abs(scale)
