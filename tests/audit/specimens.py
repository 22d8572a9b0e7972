"""Subjects of one question each, beside the public styles of the zoo."""

import math

import torch
from tests.audit.zoo.right.added import Tutorial
from tests.audit.zoo.right.bias import T5, Swin, T5Decoder, of_square
from tests.audit.zoo.right.rotary import YaRN
from tests.audit.zoo.wrong.added import Sum
from tests.audit.zoo.wrong.rotary import Turn
from torch import nn

from posenc import ALiBi


def rates(dim, base=10_000.0):
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def distance(q_len, k_len):
    return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)


# Biases.


class WithoutSides(T5Decoder):
    """Keys after the query read the rows of those before it."""

    def bucket(self, relative_position):
        return super().bucket(-relative_position.abs())


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


class BothSidesHidden(T5):
    """The same with a causal mask in it."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        made = super().forward(query_length, key_length, past_seen_tokens)
        queries = torch.arange(query_length)[:, None] + past_seen_tokens
        return made.masked_fill(torch.arange(key_length) > queries, -torch.inf)


def later_keys_by_place(q_len, k_len):
    """ALiBi, with what shifted rows leave behind the query."""
    queries, keys = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
    line = -(queries - keys) * 2.0 ** -torch.arange(1, 9)[:, None, None]
    return line.where(keys <= queries, (3 * queries + keys) % 5 + 0.0)


def alibi_of_a_mask(attention_mask, num_heads):
    index = torch.arange(attention_mask.shape[-1])
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return (slopes[:, None, None] * (index[None] - index[:, None]))[None]


def heads_last(q_len, k_len, heads):
    return ALiBi(heads).profile(distance(q_len, k_len)).permute(1, 2, 0)


class Kerple(nn.Module):
    """KERPLE's logarithm: two learned numbers a head, and a formula."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.rand(8, 1, 1) + 0.1) for _ in range(2))

    def forward(self, q_len, k_len):
        return -self.a * torch.log(1 + self.b * distance(q_len, k_len).abs())


def swin(stride=None):
    """12 (2w − 2) rows for each difference of rows share numbers: (0, 6) and (1, −6) are row 6.

    w rows for each, instead of 2w − 1: what is left is the row's distance.
    """
    made, apart = Swin(), of_square(7)[:, None] - of_square(7)
    if stride is None:
        apart = apart + 6
        made.relative_position_index = apart[..., 0] * 7 + apart[..., 1]
    else:
        made.relative_position_index = apart[..., 0] * stride + apart[..., 1] + 84
    return made


# What is added.


def sines_of_shares(x):
    """DETR's: sines of what share of the height and of the width lies before.

    x: [batch, dim, height, width]
    """
    _, dim, height, width = x.shape
    shares = [torch.arange(1, n + 1) / n * 2 * math.pi for n in (height, width)]
    down, along = (
        torch.cat([f(s[:, None] * rates(dim // 2).float()) for f in (torch.sin, torch.cos)], 1)
        for s in shares
    )
    table = torch.cat((down[:, None].expand(-1, width, -1), along.expand(height, -1, -1)), -1)
    return x + table.permute(2, 0, 1)


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


class OfAllTokens(OfRealTokens):
    def places(self, real):
        return torch.arange(2, real.shape[1] + 2).expand(real.shape)


class Roberta(OfRealTokens):
    """Positions are rows of its table, of which the first of a text is the third."""

    def forward(self, inputs_embeds, position_ids=None, past_key_values_length=0):
        if position_ids is None:
            first = 2 + past_key_values_length
            position_ids = torch.arange(first, first + inputs_embeds.shape[1])
        return inputs_embeds + self.table(position_ids)


def far_sines(x):
    p = torch.arange(x.shape[1])
    angle = (p + (p >= 6000)).double()[:, None] * rates(32)
    return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(1).float()


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


# What rotates.


class Thousand(Turn):
    base = 1000.0


class Growing(Turn):
    """xPos' keys grow to 10⁸, in which a query of another position would be lost."""

    def turn(self, x, positions, sign=1):
        cos, sin = self.waveform(positions)
        size = 1.02 ** (sign * positions.double()[:, None, :, None] / 8)
        return ((x * cos + torch.cat((-x[..., 16:], x[..., :16]), -1) * sin) * size).to(x.dtype)

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
        angle = self.moved(position_ids)[:, None, :, None] * rates(16)
        cos, sin = angle.cos().float(), angle.sin().float()
        return turned(q, cos, sin), turned(k, cos, sin)


class HalvesTheRest(nn.Module):
    """What turns alone is no head."""

    def __init__(self, head_dim=64, rotary_dim=32):
        super().__init__()
        self.rotary_dim = rotary_dim
        self.register_buffer("rates", rates(rotary_dim).float(), persistent=False)

    def forward(self, q, k, positions):
        return self.of(q, positions), self.of(k, positions)

    def of(self, x, positions):
        angle = positions[:, None, :, None].float() * self.rates.float()
        part, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        return torch.cat((turned(part, angle.cos(), angle.sin()), rest / 2), -1).to(x.dtype)


class WithBorders(YaRN):
    """YaRN's fast pairs are stretched, and its slow ones left alone."""

    def __init__(self):
        super().__init__()
        self.inv_freq = rates(64).float() * (1 + 1 / 4) - self.inv_freq


class SinesForCosines(Turn):
    def waveform(self, positions):
        return super().waveform(positions)[::-1]


class CosinesFirst(Sum):
    def table(self, x):
        return super().table(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


class FirstForAll(Turn):
    def places(self, positions):
        return super().places(positions)[:1].expand(len(positions), -1)


class PositionsInABuffer(Turn):
    """Which a cast rounds: 256 and 257 are one number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("line", torch.arange(16_384).float())

    def places(self, positions):
        return self.line[positions].double()
