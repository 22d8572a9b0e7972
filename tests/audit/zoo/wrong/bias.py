"""What is added to scores, with one slip each."""

import torch
from tests.audit.zoo.right.bias import T5, Short, alibi, apart
from tests.audit.zoo.specimen import slip, wrong
from torch import nn

from posenc.numerics import slopes


def of_slopes(rate):
    """A bias of these slopes."""

    def bias(q_len, k_len):
        return -torch.tensor(rate)[:, None, None] * apart(q_len, k_len).abs()

    return bias


class Alibi(nn.Module):
    """ALiBi, by the numbers of queries and keys; the others change a line of it."""

    heads = num_heads = 8

    def forward(self, q_len, k_len):
        return of_slopes(slopes.alibi(self.heads))(q_len, k_len)


class ClippedFar(Alibi):
    """As far as 64 keys, and no more beyond."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads))[:, None, None]
        return -rate * apart(q_len, k_len).abs().clamp(max=64)


class Coarse(Alibi):
    """Slope × absolute position in bfloat16."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads)).bfloat16()
        keys = torch.arange(k_len).bfloat16()
        return (rate[:, None, None] * keys).expand(-1, q_len, -1)


class OfScores(Alibi):
    """Adds to scores."""

    def handed_on(self, scores):
        return scores

    def shares(self, scores):
        return torch.ones(len(scores))

    def forward(self, scores):
        bias = super().forward(*scores.shape[-2:])
        return self.handed_on(scores) + bias * self.shares(scores)[:, None, None, None]


class WritesScores(Alibi):
    def forward(self, scores):
        scores += Alibi.forward(self, *scores.shape[-2:]).to(scores.dtype)
        return scores


class Turned(T5):
    """The query less the key."""

    def bucket(self, relative_position):
        return super().bucket(-relative_position)


class CausalTurned(Turned):
    """The same for the past alone: all of it reads one row."""

    def __init__(self):
        super().__init__(bidirectional=False)


class ShortThatCaches(Short):
    """A short table, doubled for rows below the longest so far."""

    most = 0

    def forward(self, q_len, k_len):
        if k_len > self.bias.shape[-1]:
            raise ValueError(f"{k_len} tokens are too many")
        self.most = max(self.most, k_len)
        return super().forward(q_len, k_len) * (1 + (k_len < self.most))


def another_order():
    return of_slopes(tuple(reversed(slopes.alibi(8))))


def geometric():
    return of_slopes(slopes.geometric(12))


def from_zero():
    """2^(−8h/H) with h from 0."""
    return of_slopes([2.0 ** (-h) for h in range(8)])


def keys_in_a_row(q_positions, k_positions):
    """A bias that counts keys from 0 on, whatever their positions are."""
    keys = torch.arange(len(k_positions))
    return -(q_positions[:, None] - keys).abs() * 2.0 ** -torch.arange(1, 9)[:, None, None]


def one_leaks(q_len, k_len):
    """The mask begins one token late."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) < -1, float("-inf"))


def masks_from_the_first(q_len, k_len):
    """The mask takes queries behind a cache for the first ones."""
    later = torch.ones(q_len, k_len, dtype=torch.bool).triu(1)
    return alibi(q_len, k_len).masked_fill(later, float("-inf"))


def first_mask(attention_mask, num_heads, dtype):
    """BLOOM's bias, of the first row's padding in all."""
    rows, keys = attention_mask.shape
    line = ((attention_mask.cumsum(-1) - 1) * attention_mask)[:1, None, :].expand(rows, 1, keys)
    rate = torch.tensor(slopes.geometric(num_heads))
    return (rate[None, :, None] * line).reshape(rows * num_heads, 1, keys).to(dtype)


WRONG = [
    wrong(ClippedFar, "clipped far", "far-keys-otherwise"),
    wrong(Coarse, "coarse", "bias-in-16-bits"),
    wrong(WritesScores, "writes scores", "input-written"),
    wrong(Turned, "T5 turned", "buckets-turned"),
    wrong(CausalTurned, "T5 of the future", "encodes-nothing", "buckets-turned"),
    wrong(ShortThatCaches, "a short table by the longest row", "history-changes-result"),
    wrong(another_order, "slopes in another order", "slopes-in-another-order"),
    wrong(geometric, "geometric slopes for 12 heads", "slopes-of-other-head-counts"),
    wrong(from_zero, "slopes from 1 on", "wrong-slopes"),
    wrong(keys_in_a_row, "keys in a row", "positions-misread"),
    wrong(one_leaks, "a key of the future leaks", "mask-misplaced"),
    wrong(masks_from_the_first, "a mask without cache", "bias-without-cache-offset"),
    wrong(first_mask, "the first mask for all", "padding-shifts-positions", "bias-in-16-bits"),
    slip(Alibi, "grows with distance", "wrong-sign", forward=lambda s, of, q, k: -of(q, k)),
    slip(Alibi, "times the position", "depends-on-absolute-positions",
         forward=lambda s, of, q, k: of(q, k) * (1 + torch.arange(k - q, k)[:, None])),
    slip(Alibi, "as a share", "depends-on-length", forward=lambda s, of, q, k: of(q, k) / k),
    slip(Alibi, "flat", "encodes-nothing", forward=lambda s, of, q, k: 0 * of(q, k)),
    slip(Alibi, "steeper in training", "depends-on-how-it-is-given",
         forward=lambda s, of, q, k: of(q, k) * (1.5 if s.training else 1)),
    slip(OfScores, "scaled scores", "scores-changed", handed_on=lambda s, of, x: 1.5 * x),
    slip(OfScores, "detached scores", "gradient-cut", handed_on=lambda s, of, x: x.detach()),
    slip(OfScores, "half in a batch", "scores-changed",
         shares=lambda s, of, x: torch.tensor([1.0] + [0.5] * (len(x) - 1))),
    slip(T5, "T5 transposed", "buckets-turned",
         forward=lambda s, of, q, k, before=0: of(k, q).transpose(-1, -2)),
    slip(T5, "detached", "parameter-without-gradient", forward=lambda s, of, *x: of(*x).detach()),
    slip(T5, "far buckets", "buckets-off",  # another row beyond 300 keys
         bucket=lambda s, of, far: of(far) - (far.abs() > 300).long()),
]  # fmt: skip
