"""What is added to embeddings, with one slip each."""

import math

import torch
from tests.audit.zoo.right.added import PatchesAlone
from tests.audit.zoo.specimen import slip, wrong
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

    def places(self, x):
        return torch.arange(x.shape[1])

    def table(self, x):
        return self.pe[self.places(x)].to(x.dtype)

    def forward(self, x):
        return x + self.table(x)


class Behind(Sum):
    """Behind a cache it begins at its offset."""

    def start(self, offset, length):
        return offset

    def forward(self, x, offset=0):
        start = self.start(offset, x.shape[1])
        return x + self.pe[start : start + x.shape[1]].to(x.dtype)


class Clamped(Sum):
    """Beyond the table the last row."""

    def places(self, x):
        return super().places(x).clamp(max=self.max_len - 1)


class WritesIntoInput(Sum):
    def forward(self, x):
        x += self.table(x)
        return x


class ShrinkingCache(Sum):
    """Keeps the table of the longest row, scaled to it."""

    longest = 0

    def table(self, x):
        self.longest = max(self.longest, x.shape[1])
        stretch = max(1.0, self.longest / 64)
        angles = self.places(x).double()[:, None] / stretch * self.rates()
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).to(x.dtype)

    def rates(self):
        return 10000.0 ** -(torch.arange(0, self.d_model, 2).double() / self.d_model)


class CachesFirstDtype(Sum):
    """Keeps the table in the dtype of whoever came first."""

    kept = None

    def table(self, x):
        if self.kept is None or len(self.kept) < x.shape[1]:
            self.kept = sines(max(x.shape[1], 16), self.d_model).to(x.dtype)
        return self.kept[: x.shape[1]]


class CountsCalls(Sum):
    """Goes on where the last call ended."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def table(self, x):
        made = sines(x.shape[1], self.d_model, start=self.seen)
        self.seen += x.shape[1]
        return made.to(x.dtype)


class Angles(Sum):
    """Sines on the fly."""

    def rates(self, x):
        return 10000.0 ** (-torch.arange(0, self.d_model, 2).double() / self.d_model)

    def line(self, x):
        return self.places(x).double()

    def table(self, x):
        angles = self.line(x)[:, None] * self.rates(x)
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1).to(x.dtype)


class CastsFrequencies(Angles):
    """A buffer of frequencies, which a cast rounds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rate", Angles.rates(self, None).float())
        self.pe = None

    def rates(self, x):
        return self.rate.float()


class HalfTable(Sum):
    """A float32 sum of a table in bfloat16."""

    def __init__(self):
        super().__init__()
        self.pe = self.pe.bfloat16()


class WithinAutocast(nn.Module):
    """A product of matrices, which autocast rounds."""

    def forward(self, x):
        """x: [batch, seq, dim]"""
        rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angles = torch.arange(x.shape[1]).float()[:, None] @ rates[None]
        return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).to(x.dtype)


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


class EncodesTheBatch(nn.Module):
    """x: [seq, batch, dim]; encodes axis 1."""

    def forward(self, x):
        return x + sines(128, 64)[: x.shape[1]].to(x.dtype)


def angles_divided_whole(x):
    """x: [batch, seq, dim]"""
    divisors = 10000.0 ** (torch.arange(0, x.shape[2], 2) / x.shape[2])
    angles = torch.arange(x.shape[1])[:, None] // divisors
    return x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def timestep_grows(timesteps, dim=32, max_period=10000):
    """Diffusion steps without the minus, in float32."""
    half = dim // 2
    rate = torch.exp(math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * rate[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


def of_exponent(exponent):
    return lambda x: x + sines(x.shape[1], x.shape[2], exponent=exponent).to(x.dtype)


def squared():
    return of_exponent(lambda i, d: (2 * i / d) ** 2)


def divided_whole():
    return of_exponent(lambda i, d: 2 * i // d)


def sine_twice(x):
    made = sines(x.shape[1], x.shape[2])
    made[:, 1::2] = made[:, 0::2]
    return x + made.to(x.dtype)


def scaled(x):
    return x + 2.5 * sines(x.shape[1], x.shape[2]).to(x.dtype)


def fractional_rows():
    """Patches whose row is their number by the side, a fraction."""
    number, width = torch.arange(196).double(), 10_000.0 ** (-torch.arange(8) / 8)
    row, column = ((each[:, None] * width) for each in (number / 14, number % 14))
    return PatchesAlone(torch.cat((row.sin(), row.cos(), column.sin(), column.cos()), 1).float())


WRONG = [
    wrong(fractional_rows, "rows by /", "rows-not-whole"),
    wrong(angles_divided_whole, "angles divided by //", "angles-rounded"),
    wrong(timestep_grows, "sign of the exponent of steps", "wrong-exponent"),
    wrong(squared, "squared exponent of sines", "unknown-frequencies"),
    wrong(divided_whole, "exponent of an integer division", "wrong-exponent"),
    wrong(sine_twice, "sine twice", "sine-twice"),
    wrong(scaled, "times 2.5", "table-scaled"),
    wrong(Clamped, "clamped sum", "clamped"),
    wrong(WritesIntoInput, "sum that writes", "input-written"),
    wrong(ShrinkingCache, "dynamic sum", "history-changes-result"),
    wrong(CachesFirstDtype, "dtype of the first sum", "first-dtype-cached"),
    wrong(CountsCalls, "counts calls", "state-between-calls"),
    wrong(HalfTable, "sum of a table in bfloat16", "table-in-16-bits"),
    wrong(CastsFrequencies, "frequencies of a sum that are cast", "cast-breaks-it"),
    wrong(WithinAutocast, "a sum within autocast", "autocast-breaks-it"),
    wrong(Unused, "unused parameter", "parameter-without-gradient"),
    wrong(PaddingCounts, "padding counts", "padding-shifts-positions"),
    wrong(EncodesTheBatch, "encodes the batch", "batch-axis-encoded"),
    slip(Sum, "one position for all", "encodes-nothing",
         table=lambda s, of, x: s.pe[3].to(x.dtype)),
    slip(Sum, "all tokens share", "positions-shared", places=lambda s, of, x: of(x) // 2),
    slip(Sum, "wrapped sum", "wrapped", places=lambda s, of, x: of(x) % s.max_len),
    slip(Sum, "sum that stops", "stops", table=lambda s, of, x: nn.functional.pad(
        s.pe[: x.shape[1]], (0, 0, 0, max(0, x.shape[1] - s.max_len))).to(x.dtype)),
    slip(Sum, "truncates", "truncated-silently", forward=lambda s, of, x: of(x[:, : s.max_len])),
    slip(Sum, "from the end", "depends-on-length", places=lambda s, of, x: of(x).flip(0)),
    slip(Sum, "large embeddings dropped", "depends-on-how-it-is-given",
         forward=lambda s, of, x: of(x * (x.abs() < 50))),
    slip(Sum, "scaled gradients", "gradient-otherwise",
         forward=lambda s, of, x: of(0.1 * x + 0.9 * x.detach())),
    slip(Sum, "cut in training", "gradient-cut",
         forward=lambda s, of, x: of(x.detach() if s.training else x)),
    slip(Behind, "sum one early behind a cache", "off-by-one-after-cache",
         start=lambda s, of, offset, length: max(offset - 1, 0)),
    slip(Behind, "forgets the cache", "decoding-differs-from-prefill",
         start=lambda s, of, offset, length: 0 if length == 1 else offset),
    slip(Angles, "frequencies of a sum in bfloat16", "frequencies-in-16-bits",
         rates=lambda s, of, x: of(x).bfloat16().double()),
    slip(Angles, "sum of positions in bfloat16", "positions-in-16-bits",
         rates=lambda s, of, x: of(x).to(x.dtype), line=lambda s, of, x: of(x).to(x.dtype)),
]  # fmt: skip
