"""What is added to scores, with one slip each."""

import torch
from tests.audit.zoo.arithmetic import apart
from tests.audit.zoo.right.bias import T5, Short, T5Decoder, alibi
from tests.audit.zoo.specimen import slip, wrong
from torch import nn

from posenc.numerics import slopes


class Alibi(nn.Module):
    """ALiBi, by the numbers of queries and keys; the others change a line of it."""

    heads = num_heads = 8

    def rates(self):
        return slopes.alibi(self.heads)

    def away(self, q_len, k_len):
        return apart(q_len, k_len).abs()

    def forward(self, q_len, k_len):
        return -torch.tensor(self.rates())[:, None, None] * self.away(q_len, k_len)


class OfScores(Alibi):
    """Adds to scores."""

    def handed_on(self, scores):
        return scores

    def shares(self, scores):
        return torch.ones(len(scores))

    def forward(self, scores):
        bias = super().forward(*scores.shape[-2:])
        return self.handed_on(scores) + bias * self.shares(scores)[:, None, None, None]


class ShortThatCaches(Short):
    """A short table, doubled for rows below the longest so far."""

    most = 0

    def forward(self, q_len, k_len):
        if k_len > self.bias.shape[-1]:
            raise ValueError(f"{k_len} tokens are too many")
        self.most = max(self.most, k_len)
        return super().forward(q_len, k_len) * (1 + (k_len < self.most))


def keys_in_a_row(q_positions, k_positions):
    """A bias that counts keys from 0 on, whatever their positions are."""
    keys = torch.arange(len(k_positions))
    return -(q_positions[:, None] - keys).abs() * 2.0 ** -torch.arange(1, 9)[:, None, None]


def one_leaks(q_len, k_len):
    """The mask begins one token late."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) < -1, -torch.inf)


def masks_from_the_first(q_len, k_len):
    """The mask takes queries behind a cache for the first ones."""
    later = torch.ones(q_len, k_len, dtype=torch.bool).triu(1)
    return alibi(q_len, k_len).masked_fill(later, -torch.inf)


def first_mask(attention_mask, num_heads, dtype):
    """BLOOM's bias, of the first row's padding in all."""
    rows, keys = attention_mask.shape
    line = ((attention_mask.cumsum(-1) - 1) * attention_mask)[:1, None, :].expand(rows, 1, keys)
    rate = torch.tensor(slopes.geometric(num_heads))
    return (rate[None, :, None] * line).reshape(rows * num_heads, 1, keys).to(dtype)


def coarse(s, of, q_len, k_len):
    """Slope × absolute position in bfloat16."""
    rates = torch.tensor(s.rates()).bfloat16()
    return (rates[:, None, None] * torch.arange(k_len).bfloat16()).expand(-1, q_len, -1)


WRONG = [
    wrong(ShortThatCaches, "a short table by the longest row", "history-changes-result"),
    wrong(keys_in_a_row, "keys in a row", "positions-misread"),
    wrong(one_leaks, "a key of the future leaks", "mask-misplaced"),
    wrong(masks_from_the_first, "a mask without cache", "bias-without-cache-offset"),
    wrong(first_mask, "the first mask for all", "padding-shifts-positions", "bias-in-16-bits"),
    slip(Alibi, "coarse", "bias-in-16-bits", forward=coarse),
    slip(Alibi, "clipped far", "far-keys-otherwise",
         away=lambda s, of, q, k: of(q, k).clamp(max=64)),
    slip(Alibi, "slopes in another order", "slopes-in-another-order",
         rates=lambda s, of: of()[::-1]),
    slip(Alibi, "geometric slopes for 12 heads", "slopes-of-other-head-counts",
         heads=12, num_heads=12, rates=lambda s, of: slopes.geometric(12)),
    slip(Alibi, "slopes from 1 on", "wrong-slopes",  # 2^(−8h/H) with h from 0
         rates=lambda s, of: [2.0**-h for h in range(8)]),
    slip(Alibi, "grows with distance", "wrong-sign", forward=lambda s, of, q, k: -of(q, k)),
    slip(Alibi, "times the position", "depends-on-absolute-positions",
         forward=lambda s, of, q, k: of(q, k) * (1 + torch.arange(k - q, k)[:, None])),
    slip(Alibi, "as a share", "depends-on-length", forward=lambda s, of, q, k: of(q, k) / k),
    slip(Alibi, "flat", "encodes-nothing", forward=lambda s, of, q, k: 0 * of(q, k)),
    slip(Alibi, "steeper in training", "depends-on-how-it-is-given",
         forward=lambda s, of, q, k: of(q, k) * (1.5 if s.training else 1)),
    slip(OfScores, "writes scores", "input-written",
         forward=lambda s, of, x: x.add_(Alibi.forward(s, *x.shape[-2:]).to(x.dtype))),
    slip(OfScores, "scaled scores", "scores-changed", handed_on=lambda s, of, x: 1.5 * x),
    slip(OfScores, "detached scores", "gradient-cut", handed_on=lambda s, of, x: x.detach()),
    slip(OfScores, "half in a batch", "scores-changed",
         shares=lambda s, of, x: torch.tensor([1.0] + [0.5] * (len(x) - 1))),
    slip(T5, "T5 turned", "buckets-turned",  # the query less the key
         bucket=lambda s, of, far: of(-far)),
    slip(T5Decoder, "T5 of the future", "encodes-nothing", "buckets-turned",
         bucket=lambda s, of, far: of(-far)),  # all of the past reads one row
    slip(T5, "T5 transposed", "buckets-turned",
         forward=lambda s, of, q, k, before=0: of(k, q).transpose(-1, -2)),
    slip(T5, "detached", "parameter-without-gradient", forward=lambda s, of, *x: of(*x).detach()),
    slip(T5, "far buckets", "buckets-off",  # another row beyond 300 keys
         bucket=lambda s, of, far: of(far) - (far.abs() > 300).long()),
]  # fmt: skip
