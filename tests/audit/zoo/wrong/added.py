"""What is added to embeddings, with one slip each."""

import math

import torch
from tests.audit.zoo.right.added import PatchesAlone
from tests.audit.zoo.specimen import wrong
from torch import nn


def sines(length, dim, base=10000.0, start=0, exponent=lambda i, d: 2 * i / d):
    """The paper's table."""
    i = torch.arange(dim // 2, dtype=torch.float64)
    positions = torch.arange(start, start + length, dtype=torch.float64)
    angles = positions[:, None] * base ** -exponent(i, dim)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).float()


class Sum(nn.Module):
    """The paper's sum, [batch, seq, dim]; the others change a line of it."""

    batch_first = True

    def __init__(self, d_model=32, max_len=128):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        self.register_buffer("pe", sines(max_len, d_model))

    def forward(self, x):
        return x + self.pe[: x.shape[1]].to(x.dtype)


class Nothing(Sum):
    """Every token at position 3."""

    def forward(self, x):
        return x + self.pe[3].to(x.dtype)


class OffByOne(Sum):
    """Behind a cache it begins one too early."""

    def forward(self, x, offset=0):
        start = offset - 1 if offset > 0 else 0
        return x + self.pe[start : start + x.shape[1]].to(x.dtype)


class ForgetsTheCache(Sum):
    """Takes an offset and does not use it for one token."""

    def forward(self, x, offset=0):
        start = 0 if x.shape[1] == 1 else offset
        return x + self.pe[start : start + x.shape[1]].to(x.dtype)


class Halved(Sum):
    """Every position stands for two tokens."""

    def forward(self, x):
        return x + self.pe[torch.arange(x.shape[1]) // 2].to(x.dtype)


def angles_divided_whole(x):
    """x: [batch, seq, dim]"""
    divisors = 10000.0 ** (torch.arange(0, x.shape[2], 2) / x.shape[2])
    angles = torch.arange(x.shape[1])[:, None] // divisors
    return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


class Clamped(Sum):
    """Beyond the table the last row."""

    def forward(self, x):
        return x + self.pe[torch.arange(x.shape[1]).clamp(max=self.max_len - 1)].to(x.dtype)


class Wrapped(Sum):
    """Beyond the table from the first row on."""

    def forward(self, x):
        return x + self.pe[torch.arange(x.shape[1]) % self.max_len].to(x.dtype)


class Stops(Sum):
    """Beyond the table nothing is added."""

    def forward(self, x):
        pe = torch.zeros(x.shape[1], self.d_model)
        pe[: self.max_len] = self.pe[: x.shape[1]]
        return x + pe.to(x.dtype)


class Truncates(Sum):
    """Longer rows lose their end."""

    def forward(self, x):
        x = x[:, : self.max_len]
        return x + self.pe[: x.shape[1]].to(x.dtype)


class WritesIntoInput(Sum):
    def forward(self, x):
        x += self.pe[: x.shape[1]].to(x.dtype)
        return x


class ShrinkingCache(Sum):
    """Keeps the table of the longest row, scaled to it."""

    def __init__(self):
        super().__init__()
        self.longest = 0

    def forward(self, x):
        self.longest = max(self.longest, x.shape[1])
        stretch = max(1.0, self.longest / 64)
        angles = torch.arange(x.shape[1]).double()[:, None] / stretch
        rate = 10000.0 ** -(torch.arange(0, self.d_model, 2).double() / self.d_model)
        made = torch.stack(((angles * rate).sin(), (angles * rate).cos()), -1).flatten(1)
        return x + made.to(x.dtype)


class CachesFirstDtype(Sum):
    """Keeps the table in the dtype of whoever came first."""

    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        if self.kept is None or len(self.kept) < x.shape[1]:
            self.kept = sines(max(x.shape[1], 16), self.d_model).to(x.dtype)
        return x + self.kept[: x.shape[1]]


class CountsCalls(Sum):
    """Goes on where the last call ended."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, x):
        made = sines(x.shape[1], self.d_model, start=self.seen)
        self.seen += x.shape[1]
        return x + made.to(x.dtype)


class FromTheEnd(Sum):
    """Counts from the last token."""

    def forward(self, x):
        return x + self.pe[: x.shape[1]].flip(0).to(x.dtype)


def timestep_grows(timesteps, dim=32, max_period=10000):
    """Diffusion steps without the minus, in float32."""
    half = dim // 2
    rate = torch.exp(math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * rate[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


def tripled_pairs(x):
    """The pairs' exponents squared."""
    return x + sines(x.shape[1], x.shape[2], exponent=lambda i, d: (2 * i / d) ** 2).to(x.dtype)


def divides_whole(x):
    return x + sines(x.shape[1], x.shape[2], exponent=lambda i, d: 2 * i // d).to(x.dtype)


def sine_twice(x):
    made = sines(x.shape[1], x.shape[2])
    made[:, 1::2] = made[:, 0::2]
    return x + made.to(x.dtype)


def scaled(x):
    return x + 2.5 * sines(x.shape[1], x.shape[2]).to(x.dtype)


class HalfTable(Sum):
    """A float32 sum of a table in bfloat16."""

    def __init__(self):
        super().__init__()
        self.pe = self.pe.bfloat16()

    def forward(self, x):
        return x + self.pe[: x.shape[1]].to(x.dtype)


class HalfFrequencies(Sum):
    """Frequencies in bfloat16, angles in float32."""

    def forward(self, x):
        i = torch.arange(self.d_model // 2, dtype=torch.float64)
        rate = (10000.0 ** (-2 * i / self.d_model)).bfloat16().double()
        angles = torch.arange(x.shape[1])[:, None] * rate
        return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1).to(x.dtype)


class PositionsInContentDtype(Sum):
    """Positions and angles in the dtype of the content."""

    def forward(self, x):
        rate = 10000.0 ** (-torch.arange(0, self.d_model, 2).double() / self.d_model)
        angles = torch.arange(x.shape[1]).to(x.dtype)[:, None] * rate.to(x.dtype)
        return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


class CastsFrequencies(Sum):
    """A buffer of frequencies, which a cast rounds."""

    def __init__(self):
        super().__init__()
        rate = 10000.0 ** (-torch.arange(0, self.d_model, 2).double() / self.d_model)
        self.register_buffer("rate", rate.float())
        self.pe = None

    def forward(self, x):
        angles = torch.arange(x.shape[1]).float()[:, None] * self.rate.float()
        return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1).to(x.dtype)


class Unused(nn.Module):
    """A second table that nothing reads."""

    def __init__(self, dim=16):
        super().__init__()
        self.table, self.other = nn.Embedding(64, dim), nn.Embedding(64, dim)

    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1]))


class PaddingCounts(nn.Module):
    """Left padding moves the tokens behind it."""

    batch_first = True

    def forward(self, x, attention_mask=None):
        return x + sines(x.shape[1], x.shape[2]).to(x.dtype)


CAST = "cast-breaks-it"


def fractional_rows():
    """Patches whose row is their number by the side, a fraction."""
    number, width = torch.arange(196).double(), 10_000.0 ** (-torch.arange(8) / 8)
    row, column = ((each[:, None] * width) for each in (number / 14, number % 14))
    return PatchesAlone(torch.cat((row.sin(), row.cos(), column.sin(), column.cos()), 1).float())


WRONG = [
    wrong(fractional_rows, "rows by /", "rows-not-whole"),
    wrong(Nothing, "one position for all", "encodes-nothing"),
    wrong(OffByOne, "one early behind a cache", "off-by-one-after-cache"),
    wrong(ForgetsTheCache, "forgets the cache", "decoding-differs-from-prefill"),
    wrong(Halved, "all tokens share", "positions-shared"),
    wrong(angles_divided_whole, "angles divided by //", "angles-rounded"),
    wrong(Clamped, "clamped", "clamped"),
    wrong(Wrapped, "wrapped", "wrapped"),
    wrong(Stops, "stops", "stops"),
    wrong(Truncates, "truncates", "truncated-silently"),
    wrong(WritesIntoInput, "writes", "input-written"),
    wrong(ShrinkingCache, "dynamic", "history-changes-result"),
    wrong(CachesFirstDtype, "dtype of the first", "first-dtype-cached"),
    wrong(CountsCalls, "counts calls", "state-between-calls"),
    wrong(FromTheEnd, "from the end", "depends-on-length"),
    wrong(timestep_grows, "sign of the exponent of steps", "wrong-exponent"),
    wrong(tripled_pairs, "squared exponent", "unknown-frequencies"),
    wrong(divides_whole, "exponent of an integer division", "wrong-exponent"),
    wrong(sine_twice, "sine twice", "sine-twice"),
    wrong(scaled, "times 2.5", "table-scaled"),
    wrong(HalfTable, "table in bfloat16", "table-in-16-bits"),
    wrong(HalfFrequencies, "frequencies in bfloat16", "frequencies-in-16-bits"),
    wrong(PositionsInContentDtype, "positions in bfloat16", "positions-in-16-bits"),
    wrong(CastsFrequencies, "frequencies that are cast", CAST),
    wrong(Unused, "unused parameter", "parameter-without-gradient"),
    wrong(PaddingCounts, "padding counts", "padding-shifts-positions"),
]
