"""What is right token by token, and misreads positions that are said in another way."""

import torch
from tests.audit.zoo.right.rotary import BesideLongerKeys
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn


class Said(nn.Module):
    """The paper's sum at positions that are said; the others change a line of it."""

    batch_first, dim = True, 32

    def table(self, positions):
        rates = 10000.0 ** -(torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)
        angles = positions[..., None].double() * rates
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)

    def read(self, positions):
        return positions

    def plain(self, x):
        return torch.arange(x.shape[1])

    def forward(self, x, positions=None):
        """x: [batch, seq, dim]"""
        places = self.plain(x) if positions is None else self.read(positions)
        return x + self.table(places).to(x.dtype)


class FromTheFirst(Said):
    """Counts on from the first position, whatever the others are."""

    def read(self, positions):
        return positions[..., :1] + torch.arange(positions.shape[-1])


class Sorted(Said):
    """Positions in order, whatever order they came in."""

    def read(self, positions):
        return positions.sort(-1).values


class FirstRow(Said):
    """The positions of the first row for all rows."""

    def read(self, positions):
        return positions[:1].expand_as(positions) if positions.ndim > 1 else positions


class PlainEnds(Said):
    """Rows without positions stop counting at 100."""

    def plain(self, x):
        return super().plain(x).clamp(max=100)


class Started(Said):
    """The same by a first position."""

    def start(self, offset, length):
        return offset

    def forward(self, x, offset=0):
        """x: [batch, seq, dim]"""
        line = torch.arange(x.shape[1]) + self.start(offset, x.shape[1])
        return x + self.table(line).to(x.dtype)


class StartEnds(Started):
    """A first position of 50 and more is 50."""

    def start(self, offset, length):
        return min(offset, 50)


class StartOfOne(Started):
    """A first position is heeded where one token comes alone."""

    def start(self, offset, length):
        return offset if length == 1 else 0


class Optional(Turn):
    """Rotary by positions that may be left out."""

    def read(self, positions):
        return positions

    def plain(self, q):
        return torch.arange(q.shape[2])

    def forward(self, q, k, position_ids=None):
        """q: [batch, heads, seq, head_dim]"""
        given = position_ids is not None
        places = self.read(position_ids) if given else self.plain(q)[None]
        return self.turn(q, places), self.keys(k, places)


class RotaryPlainEnds(Optional):
    """Rows without positions stop turning at 100."""

    def plain(self, q):
        return super().plain(q).clamp(max=100)


class RotaryFromTheFirst(Optional):
    """Counts on from the first position, whatever the others are."""

    def read(self, positions):
        return positions[..., :1] + torch.arange(positions.shape[-1])


class RotaryStartOfOne(Optional):
    """Positions are heeded where one token comes alone."""

    def read(self, positions):
        many = positions.shape[-1] > 1
        return torch.arange(positions.shape[-1])[None] if many else positions


def keys_in_a_row(q_positions, k_positions):
    """A bias that counts keys from 0 on, whatever their positions are."""
    keys = torch.arange(len(k_positions))
    return -(q_positions[:, None] - keys).abs() * 2.0 ** -torch.arange(1, 9)[:, None, None]


def queries_at_the_end(q_positions, k_positions):
    """A bias that takes queries to stand at the last keys."""
    before = len(k_positions) - len(q_positions)
    queries = torch.arange(before, len(k_positions))
    return -(queries[:, None] - k_positions).abs() * 2.0 ** -torch.arange(1, 9)[:, None, None]


class Falls(nn.Module):
    """ALiBi, by the numbers of queries and keys; the others change a line of it."""

    num_heads = 8

    def distance(self, q_len, k_len):
        return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)

    def forward(self, q_len, k_len):
        slopes = 2.0 ** -torch.arange(1, self.num_heads + 1)
        return -slopes[:, None, None] * self.distance(q_len, k_len).abs()


class SquareEnds(Falls):
    """Long squares stop falling at 500, and single queries go on."""

    def distance(self, q_len, k_len):
        found = super().distance(q_len, k_len)
        return found if q_len == 1 else found.clamp(-500, 500)


class SomeFromTheFirst(Falls):
    """Several queries behind a cache are the first ones; a single query is the last."""

    def distance(self, q_len, k_len):
        return super().distance(q_len if q_len == 1 else k_len, k_len)[:q_len]


class HalfInABatch(Falls):
    """Rows of a batch but the first receive half of it."""

    def forward(self, scores):
        bias = super().forward(*scores.shape[-2:])
        share = torch.tensor([1.0] + [0.5] * (len(scores) - 1))
        return scores + bias * share[:, None, None, None]


class SlicesToItsEnd(Started):
    """A table of 128 rows, cut where they are read: beyond its end nothing is left to add."""

    def forward(self, x, start_pos=0):
        """x: [batch, seq, dim]"""
        table = self.table(torch.arange(128))[start_pos : start_pos + x.shape[1]]
        return x + table.to(x.dtype)


class RotarySlicesToItsEnd(Turn):
    """The same of queries and keys."""

    def __init__(self, max_len=256):
        super().__init__()
        self.max_len = max_len

    def forward(self, q, k, start_pos=0):
        """q: [batch, heads, seq, head_dim]"""
        at = torch.arange(self.max_len)[None, start_pos : start_pos + q.shape[2]]
        return super().forward(q, k, at)


class FirstRowDecodes(Said):
    """Single tokens of a batch stand where that of the first row does."""

    def read(self, positions):
        decodes = positions.ndim > 1 and positions.shape[1] == 1
        return positions[:1].expand_as(positions) if decodes else positions


class FarthestDecodes(Turn):
    """Single tokens of a batch stand where the farthest of them does."""

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        if q.shape[2] == 1:
            position_ids = position_ids.max().expand_as(position_ids)
        return super().forward(q, k, position_ids)


class FirstRowOfMany(Turn):
    """More than four rows stand where the first of them does."""

    def forward(self, q, k, position_ids):
        """q: [batch, heads, seq, head_dim]"""
        rows = 1 if len(q) > 4 else len(position_ids)
        return super().forward(q, k, position_ids[:rows])


class OneBeforeTheirKeys(BesideLongerKeys):
    """Fewer queries than keys stand one token before the last."""

    def first(self, q_len, k_len):
        return max(k_len - q_len - 1, 0)


class InTheMiddleOfTheirKeys(BesideLongerKeys):
    """Fewer queries than keys stand in the middle."""

    def first(self, q_len, k_len):
        return (k_len - q_len) // 2


WRONG = [
    wrong(keys_in_a_row, "keys in a row", "positions-misread"),
    wrong(queries_at_the_end, "queries at the end", "positions-misread"),
    wrong(FromTheFirst, "counts on from the first", "positions-misread"),
    wrong(Sorted, "sorts positions", "positions-misread"),
    wrong(FirstRow, "the first row's positions", "positions-misread"),
    wrong(PlainEnds, "plain rows end", "positions-misread"),
    wrong(StartEnds, "late starts end", "positions-misread"),
    wrong(StartOfOne, "starts of one token", "positions-misread"),
    wrong(RotaryPlainEnds, "plain rows end, rotary", "positions-misread"),
    wrong(RotaryFromTheFirst, "counts on, rotary", "positions-misread"),
    wrong(RotaryStartOfOne, "starts of one token, rotary", "positions-misread"),
    wrong(SquareEnds, "long squares end", "bias-without-cache-offset"),
    wrong(SomeFromTheFirst, "several queries are the first", "bias-without-cache-offset"),
    wrong(HalfInABatch, "half in a batch", "scores-changed"),
    wrong(SlicesToItsEnd, "slices to its end", "truncated-silently"),
    wrong(RotarySlicesToItsEnd, "slices to its end, rotary", "truncated-silently"),
    wrong(FirstRowDecodes, "decodes where the first row is", "padding-shifts-positions"),
    wrong(FarthestDecodes, "decodes where the farthest row is", "padding-shifts-positions"),
    wrong(FirstRowOfMany, "the first of many rows", "padding-shifts-positions"),
    wrong(OneBeforeTheirKeys, "queries one before", "off-by-one-after-cache"),
    wrong(InTheMiddleOfTheirKeys, "queries in the middle", "decoding-differs-from-prefill"),
]
