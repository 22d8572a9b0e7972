"""What is added to scores, with one slip each."""

import torch
from tests.audit.zoo.right.bias import (
    T5,
    Short,
)
from tests.audit.zoo.specimen import wrong
from torch import nn

from posenc.numerics import slopes


def distances(q_len, k_len):
    return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)


def of_slopes(rate):
    """A bias of these slopes."""

    def bias(q_len, k_len):
        return -torch.tensor(rate)[:, None, None] * distances(q_len, k_len).abs()

    return bias


class Alibi(nn.Module):
    heads = 8

    def forward(self, q_len, k_len):
        return of_slopes(slopes.alibi(self.heads))(q_len, k_len)


class Grows(Alibi):
    def forward(self, q_len, k_len):
        return -super().forward(q_len, k_len)


class Absolute(Alibi):
    """Times the position of the query."""

    def forward(self, q_len, k_len):
        return super().forward(q_len, k_len) * (1 + torch.arange(k_len - q_len, k_len)[:, None])


class Relative(Alibi):
    """Distances as a share of the row."""

    def forward(self, q_len, k_len):
        return super().forward(q_len, k_len) / k_len


class Flat(Alibi):
    def forward(self, q_len, k_len):
        return torch.zeros(self.heads, q_len, k_len)


class Coarse(Alibi):
    """Slope × absolute position in bfloat16."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads)).bfloat16()
        keys = torch.arange(k_len).bfloat16()
        return (rate[:, None, None] * keys).expand(-1, q_len, -1)


class WritesScores(Alibi):
    def forward(self, scores):
        scores += Alibi.forward(self, *scores.shape[-2:]).to(scores.dtype)
        return scores


class Turned(T5):
    """The query less the key."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        context = torch.arange(query_length)[:, None] + past_seen_tokens
        memory = torch.arange(key_length)[None, :]
        values = self.relative_attention_bias(self.bucket(context - memory))
        return values.permute([2, 0, 1]).unsqueeze(0)


class Transposed(T5):
    """Queries and keys exchanged."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        made = super().forward(key_length, query_length)
        return made.transpose(-1, -2)


class CausalTurned(Turned):
    """The same for the past alone: all of it reads one row."""

    def __init__(self):
        super().__init__(bidirectional=False)


class Detached(T5):
    def forward(self, query_length, key_length, past_seen_tokens=0):
        return super().forward(query_length, key_length, past_seen_tokens).detach()


def another_order():
    return of_slopes(tuple(reversed(slopes.alibi(8))))


def geometric():
    return of_slopes(slopes.geometric(12))


def from_zero():
    """2^(−8h/H) with h from 0."""
    return of_slopes([2.0 ** (-h) for h in range(8)])


class ClippedFar(Alibi):
    """As far as 64 keys, and no more beyond."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads))[:, None, None]
        return -rate * distances(q_len, k_len).abs().clamp(max=64)


class FarBuckets(T5):
    """Another row beyond 300 keys."""

    def bucket(self, relative_position):
        return super().bucket(relative_position) - (relative_position.abs() > 300).long()


class ShortThatCaches(Short):
    """A short table, doubled for rows below the longest so far."""

    def __init__(self):
        super().__init__()
        self.most = 0

    def forward(self, q_len, k_len):
        if k_len > self.bias.shape[-1]:
            raise ValueError(f"{k_len} tokens are too many")
        self.most = max(self.most, k_len)
        return super().forward(q_len, k_len) * (1 + (k_len < self.most))


WRONG = [
    wrong(ShortThatCaches, "a short table by the longest row", "history-changes-result"),
    wrong(ClippedFar, "clipped far", "far-keys-otherwise"),
    wrong(FarBuckets, "far buckets", "buckets-off"),
    wrong(geometric, "geometric slopes for 12 heads", "slopes-of-other-head-counts"),
    wrong(another_order, "slopes in another order", "slopes-in-another-order"),
    wrong(from_zero, "slopes from 1 on", "wrong-slopes"),
    wrong(Grows, "grows with distance", "wrong-sign"),
    wrong(Absolute, "times the position", "depends-on-absolute-positions"),
    wrong(Relative, "as a share", "depends-on-length"),
    wrong(Flat, "flat", "encodes-nothing"),
    wrong(Coarse, "coarse", "bias-in-16-bits"),
    wrong(WritesScores, "writes", "input-written"),
    wrong(Turned, "T5 turned", "buckets-turned"),
    wrong(Transposed, "T5 transposed", "buckets-turned"),
    wrong(CausalTurned, "T5 of the future", "encodes-nothing", "buckets-turned"),
    wrong(Detached, "detached", "parameter-without-gradient"),
]
