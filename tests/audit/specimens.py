"""Subjects of one question each, beside the public styles of the zoo."""

import math

import torch
from tests.audit.zoo.arithmetic import apart, halves, interleaved, of_square, powers
from tests.audit.zoo.right.added import Tutorial
from tests.audit.zoo.right.bias import T5, Swin, T5Decoder
from tests.audit.zoo.right.rotary import YaRN
from tests.audit.zoo.specimen import changed
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.rotary import Turn, turned
from torch import nn

from posenc import ALiBi, Sinusoidal

# Biases.


class Unsaid(T5):
    """Buckets for the past, of which it says nothing."""

    def __init__(self):
        super().__init__(bidirectional=False)
        del self.bidirectional

    def bucket(self, relative_position):
        return T5Decoder().bucket(relative_position)


class SaysThatItDecodes(T5):
    """Buckets for both directions in a decoder."""

    def __init__(self):
        super().__init__()
        self.is_decoder = True


def later_keys_by_place(q_len, k_len):
    """ALiBi, with what shifted rows leave behind the query."""
    keys, away = torch.arange(k_len), apart(q_len, k_len)
    line = -away * 2.0 ** -torch.arange(1, 9)[:, None, None]
    return line.where(away >= 0, (3 * (away + keys) + keys) % 5 + 0.0)


def alibi_of_a_mask(attention_mask, num_heads):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    keys = attention_mask.shape[-1]
    return (slopes[:, None, None] * -apart(keys, keys))[None]


def heads_last(q_len, k_len, heads):
    return ALiBi(heads).profile(apart(q_len, k_len)).permute(1, 2, 0)


def swin(stride=None):
    """12 (2w − 2) rows for each difference of rows share numbers: (0, 6) and (1, −6) are row 6.

    w rows for each, instead of 2w − 1: what is left is the row's distance.
    """
    made, between = Swin(), of_square(7)[:, None] - of_square(7)
    if stride is None:
        made.relative_position_index = (between[..., 0] + 6) * 7 + between[..., 1] + 6
    else:
        made.relative_position_index = between[..., 0] * stride + between[..., 1] + 84
    return made


# Keys after the query read the rows of those before it.
WithoutSides = changed(T5Decoder, "WithoutSides", bucket=lambda s, of, far: of(-far.abs()))
# Buckets for both directions, with a causal mask.
BothSidesHidden = changed(
    T5, "BothSidesHidden", forward=lambda s, of, q, k, before=0: of(q, k, before).masked_fill(
        torch.arange(k) > torch.arange(q)[:, None] + before, -torch.inf)
)  # fmt: skip


# What is added.


def sines_of_shares(x):
    """DETR's: sines of what share of the height and of the width lies before.

    x: [batch, dim, height, width]
    """
    down, along = (
        torch.arange(1, n + 1)[:, None] / n * 2 * math.pi * powers(x.shape[1] // 2)
        for n in x.shape[2:]
    )
    down, along = (torch.cat((each.sin(), each.cos()), 1).T for each in (down, along))
    down, along = down[..., None].expand(-1, -1, x.shape[3]), along[:, None]
    return x + torch.cat((down, along.expand(-1, x.shape[2], -1)))


def of_positions_and_offset(x, positions, offset=0):
    """x: [batch, seq, dim]"""
    return x + Sinusoidal(x.shape[-1]).table(positions + offset)


class IdsOrEmbeddings(nn.Module):
    """As models of transformers: one of the two."""

    def __init__(self, hidden=32):
        super().__init__()
        self.words, self.places = nn.Embedding(100, hidden), nn.Embedding(512, hidden)

    def forward(self, input_ids=None, position_ids=None, inputs_embeds=None):
        if inputs_embeds is None:
            inputs_embeds = self.words(input_ids)
        if position_ids is None:
            position_ids = torch.arange(inputs_embeds.shape[1])[None]
        return inputs_embeds + self.places(position_ids)


class WithAnUnusedTable(IdsOrEmbeddings):
    def __init__(self):
        super().__init__()
        self.unused = nn.Embedding(9, 32)


class OfRealTokens(nn.Module):
    """RoBERTa's and OPT's count of the tokens that a mask leaves, behind the row of padding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(512, 32)

    def forward(self, inputs_embeds, attention_mask=None, position_ids=None):
        if position_ids is None:
            real = torch.ones(inputs_embeds.shape[:2]) if attention_mask is None else attention_mask
            position_ids = self.places(real.long())
        return inputs_embeds + self.table(position_ids)

    def places(self, real):
        return real.cumsum(1) * real + 1


OfAllTokens = changed(
    OfRealTokens, "OfAllTokens",
    places=lambda s, of, real: torch.arange(2, real.shape[1] + 2).expand(real.shape),
)  # fmt: skip


class Roberta(OfRealTokens):
    """Positions are rows of its table, of which the first of a text is the third."""

    def forward(self, inputs_embeds, position_ids=None, past_key_values_length=0):
        if position_ids is None:
            first = 2 + past_key_values_length
            position_ids = torch.arange(first, first + inputs_embeds.shape[1])
        return inputs_embeds + self.table(position_ids)


def far_sines(x):
    p = torch.arange(x.shape[1])
    angles = (p + (p >= 6000)).double()[:, None] * powers(32, dtype=torch.float64)
    return x + interleaved(angles).float()


class ShareNamedP(Tutorial):
    def __init__(self):
        super().__init__()
        self.p = 0.5

    def forward(self, x):
        return super().forward(x) if self.p == 0.5 else x


class Places(nn.Module):
    """A table as wide as it is long."""

    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(64, 64)

    def forward(self, seq_len):
        return self.places(torch.arange(seq_len))


class OfPatches(nn.Module):
    """Patches of a window, as many as they are wide."""

    def __init__(self, window_size=(8, 8), width=64):
        super().__init__()
        self.window_size = window_size
        self.places = nn.Parameter(torch.randn(1, window_size[0] * window_size[1], width))

    def forward(self, x):
        return x + self.places


CosinesFirst = changed(
    Sum, "CosinesFirst",
    table=lambda s, of, x: of(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2),
)  # fmt: skip


# What rotates.


class Growing(Turn):
    """xPos' keys grow to 10⁸, in which a query of another position would be lost."""

    def turn(self, x, positions, sign=1):
        size = 1.02 ** (sign * positions.double()[:, None, :, None] / 8)
        return (turned(x.double(), *self.waveform(positions)) * size).to(x.dtype)

    def keys(self, k, positions):
        return self.turn(k, positions, -1)


class NarrowQueries(Growing):
    def forward(self, q, k, positions):
        return self.turn(q, positions.to(q.dtype)), self.keys(k, positions)


class Moved(nn.Module):
    """Exact angles, of positions that are moved."""

    def __init__(self, moved):
        super().__init__()
        self.moved = moved

    def forward(self, q, k, position_ids):
        angle = self.moved(position_ids)[:, None, :, None] * powers(16, dtype=torch.float64)
        cos, sin = angle.cos().float(), angle.sin().float()
        return halves(q, cos, sin), halves(k, cos, sin)


class HalvesTheRest(nn.Module):
    """What turns alone is no head."""

    def __init__(self, head_dim=64, rotary_dim=32):
        super().__init__()
        self.rotary_dim = rotary_dim
        self.register_buffer("rates", powers(rotary_dim), persistent=False)

    def forward(self, q, k, positions):
        return self.of(q, positions), self.of(k, positions)

    def of(self, x, positions):
        angle = positions[:, None, :, None].float() * self.rates.float()
        part, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        return torch.cat((halves(part, angle.cos(), angle.sin()), rest / 2), -1)


class WithBorders(YaRN):
    """YaRN's fast pairs are stretched, and its slow ones left alone."""

    def __init__(self):
        super().__init__()
        self.inv_freq = powers(64) * (1 + 1 / 4) - self.inv_freq


class PositionsInABuffer(Turn):
    """Which a cast rounds: 256 and 257 are one number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("line", torch.arange(16_384).float())

    def places(self, positions):
        return self.line[positions].double()


Thousand = changed(Turn, "Thousand", base=1000.0)
SinesForCosines = changed(Turn, "SinesForCosines", waveform=lambda s, of, p: of(p)[::-1])
FirstForAll = changed(
    Turn, "FirstForAll", places=lambda s, of, p: of(p)[:1].expand(len(p), -1)
)  # fmt: skip
