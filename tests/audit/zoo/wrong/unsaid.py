"""What is right where it is called plainly: other arguments, rows and lengths show the slip."""

import torch
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import sines
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn


class LateBehindPast(nn.Module):
    """The tokens behind a cache stand one too far, where that is said by its length."""

    late = 1

    def forward(self, x, position_ids=None, past_key_values_length=0):
        """x: [batch, seq, dim]"""
        if position_ids is None:
            past = past_key_values_length
            position_ids = torch.arange(x.shape[1])[None] + past + self.late * (past > 0)
        return x + sines(512, 64)[position_ids].to(x.dtype)


class DeafToPast(LateBehindPast):
    """The length of a cache changes nothing."""

    def forward(self, x, position_ids=None, past_key_values_length=0):
        """x: [batch, seq, dim]"""
        return super().forward(x, position_ids)


class FirstRow(nn.Module):
    """All rows receive what the positions of the first row mean."""

    def forward(self, x, position_ids=None):
        table = sines(512, 64).to(x.dtype)
        return x + (table[: x.shape[1]] if position_ids is None else table[position_ids[:1]])


class LateBehindOffset(Turn):
    """The same of queries and keys, by an offset."""

    def forward(self, q, k, position_ids=None, offset=0):
        """q: [batch, heads, seq, head_dim]"""
        if position_ids is None:
            position_ids = torch.arange(q.shape[2])[None] + offset + (offset > 0)
        return super().forward(q, k, position_ids)


class KeptByEnds(Turn):
    """Keeps its angles for positions of one shape with the same ends."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def key(self, positions):
        return positions.shape, int(positions.min()), int(positions.max())

    def waveform(self, positions):
        key = self.key(positions)
        if key not in self.kept:
            self.kept[key] = super().waveform(positions)
        return self.kept[key]


class KeptByFirstRow(KeptByEnds):
    """Keeps its angles for positions with the same first row."""

    def key(self, positions):
        return positions.shape, tuple(positions[0].tolist())


class LateInLongRows(Turn):
    """Every token of a long row stands one too far."""

    def forward(self, q, k):
        """q: [batch, heads, seq, head_dim]"""
        seq = q.shape[2]
        return super().forward(q, k, torch.arange(seq)[None] + (seq > 1024))


class StretchedByLength(LateInLongRows):
    """Dynamic NTK beyond 2,048 tokens: another base for every length."""

    def forward(self, q, k):
        """q: [batch, heads, seq, head_dim]"""
        seq = q.shape[2]
        self.base = 10000.0 * max(1.0, 2 * seq / 2048 - 1) ** (32 / 30)
        return Turn.forward(self, q, k, torch.arange(seq)[None])


class LateSums(nn.Module):
    """Every token of a row of more than 3,000 receives what the next one should."""

    def forward(self, x):
        """x: [batch, seq, dim]"""
        seq = x.shape[1]
        return x + sines(seq, 32, start=int(seq > 3000)).to(x.dtype)


class EncodesTheBatch(nn.Module):
    """x: [seq, batch, dim]; encodes axis 1."""

    def forward(self, x):
        return x + sines(128, 64)[: x.shape[1]].to(x.dtype)


def slopes(heads):
    return torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])


def heads_before_rows(attention_mask, num_heads, dtype):
    """BLOOM's bias as [heads · batch, 1, keys]."""
    rows, keys = attention_mask.shape
    line = ((attention_mask.cumsum(-1) - 1) * attention_mask)[:, None, :]
    made = slopes(num_heads)[None, :, None] * line
    return made.transpose(0, 1).reshape(rows * num_heads, 1, keys).to(dtype)


def first_mask(attention_mask, num_heads, dtype):
    """BLOOM's bias, of the first row's padding in all."""
    rows, keys = attention_mask.shape
    line = ((attention_mask.cumsum(-1) - 1) * attention_mask)[:1, None, :].expand(rows, 1, keys)
    return (slopes(num_heads)[None, :, None] * line).reshape(rows * num_heads, 1, keys).to(dtype)


def rows_turned_over(scores):
    """ALiBi on scores [batch, heads, q_len, k_len], the last row of the batch first."""
    k_len = scores.shape[-1]
    return scores.flip(0) + slopes(scores.shape[1])[:, None, None] * torch.arange(1 - k_len, 1)


MISREAD, PADDING = "positions-misread", "padding-shifts-positions"
WRONG = [
    wrong(LateBehindPast, "late behind a length", MISREAD),
    wrong(DeafToPast, "deaf to a length", MISREAD),
    wrong(FirstRow, "the first row for all", MISREAD),
    wrong(LateBehindOffset, "late behind an offset", MISREAD),
    wrong(KeptByEnds, "kept by its ends", "state-between-calls"),
    wrong(KeptByFirstRow, "kept by its first row", "state-between-calls"),
    wrong(LateInLongRows, "late in long rows", "depends-on-length"),
    wrong(StretchedByLength, "stretched by length", "depends-on-length"),
    wrong(LateSums, "late sums of long rows", "depends-on-length"),
    wrong(EncodesTheBatch, "encodes the batch", "batch-axis-encoded"),
    wrong(heads_before_rows, "heads before rows", PADDING, "bias-in-16-bits"),
    wrong(first_mask, "the first mask for all", PADDING, "bias-in-16-bits"),
    wrong(rows_turned_over, "rows turned over", "scores-changed"),
]
