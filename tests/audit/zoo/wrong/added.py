"""What is added to embeddings, with one slip each."""

import torch
from tests.audit.zoo.arithmetic import interleaved, powers, sines
from tests.audit.zoo.right.added import PatchesAlone
from tests.audit.zoo.specimen import slip, wrong
from torch import nn


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


class PaddingCounts(Sum):
    """Left padding moves the tokens behind it."""

    def forward(self, x, attention_mask=None):
        return x + sines(x.shape[1], x.shape[2]).to(x.dtype)


class CountsCalls(Sum):
    """Goes on where the last call ended."""

    seen = 0

    def table(self, x):
        self.seen += x.shape[1]
        return sines(x.shape[1], self.d_model, start=self.seen - x.shape[1]).to(x.dtype)


class Angles(Sum):
    """Sines on the fly."""

    def rates(self, x):
        return powers(self.d_model, dtype=torch.float64)

    def line(self, x):
        return self.places(x).double()

    def table(self, x):
        return interleaved(self.line(x)[:, None] * self.rates(x)).to(x.dtype)


class Dynamic(Angles):
    """Scaled to the longest row so far."""

    longest = 0

    def line(self, x):
        self.longest = max(self.longest, x.shape[1])
        return super().line(x) / max(1.0, self.longest / 64)


class CastsFrequencies(Angles):
    """A buffer of frequencies, which a cast rounds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rate", powers(self.d_model))
        self.pe = None

    def rates(self, x):
        return self.rate.float()


class Unused(nn.Module):
    """A second table that nothing reads."""

    def __init__(self, dim=16):
        super().__init__()
        self.table, self.other = nn.Embedding(64, dim), nn.Embedding(64, dim)

    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1]))


def within_autocast(x):
    """x: [batch, seq, dim]"""
    angles = torch.arange(x.shape[1]).float()[:, None] @ powers(x.shape[-1])[None]
    return x + interleaved(angles).to(x.dtype)


def encodes_the_batch(x):
    """x: [seq, batch, dim]"""
    return x + sines(128, 64)[: x.shape[1]].to(x.dtype)


def angles_divided_whole(x):
    """x: [batch, seq, dim]"""
    divisors = 10000.0 ** (torch.arange(0, x.shape[2], 2) / x.shape[2])
    return x + interleaved(torch.arange(x.shape[1])[:, None] // divisors)


def timestep_grows(timesteps, dim=32, max_period=10000):
    """Diffusion steps without the minus, in float32."""
    args = timesteps[:, None].float() / powers(dim, max_period)
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


def of_exponent(exponent):
    def summed(x):
        return x + sines(x.shape[1], x.shape[2], exponent=exponent).to(x.dtype)

    return summed


def fractional_rows():
    """Patches whose row is their number by the side, a fraction."""
    number, width = torch.arange(196).double(), 10_000.0 ** (-torch.arange(8) / 8)
    row, column = ((each[:, None] * width) for each in (number / 14, number % 14))
    return PatchesAlone(torch.cat((row.sin(), row.cos(), column.sin(), column.cos()), 1).float())


WRONG = [
    wrong(fractional_rows, "rows by /", "rows-not-whole"),
    wrong(angles_divided_whole, "angles divided by //", "angles-rounded"),
    wrong(timestep_grows, "sign of the exponent of steps", "wrong-exponent"),
    wrong(of_exponent(lambda i, d: (2 * i / d) ** 2), "squared exponent of sines",
          "unknown-frequencies"),
    wrong(of_exponent(lambda i, d: 2 * i // d), "exponent of an integer division",
          "wrong-exponent"),
    wrong(Dynamic, "dynamic sum", "history-changes-result"),
    wrong(CountsCalls, "counts calls", "state-between-calls"),
    wrong(CastsFrequencies, "frequencies of a sum that are cast", "cast-breaks-it"),
    wrong(within_autocast, "a sum within autocast", "autocast-breaks-it"),
    wrong(Unused, "unused parameter", "parameter-without-gradient"),
    wrong(PaddingCounts, "padding counts", "padding-shifts-positions"),
    wrong(encodes_the_batch, "encodes the batch", "batch-axis-encoded"),
    slip(Sum, "sine twice", "sine-twice",
         table=lambda s, of, x: of(x)[:, ::2].repeat_interleave(2, -1)),
    slip(Sum, "times 2.5", "table-scaled", table=lambda s, of, x: 2.5 * of(x)),
    slip(Sum, "sum of a table in bfloat16", "table-in-16-bits",
         table=lambda s, of, x: of(x).bfloat16().to(x.dtype)),
    slip(Sum, "one position for all", "encodes-nothing",
         table=lambda s, of, x: s.pe[3].to(x.dtype)),
    slip(Sum, "dtype of the first sum", "first-dtype-cached", table=lambda s, of, x: vars(
        s).setdefault("kept", sines(4096, s.d_model).to(x.dtype))[: x.shape[1]]),
    slip(Sum, "clamped sum", "clamped", places=lambda s, of, x: of(x).clamp(max=s.max_len - 1)),
    slip(Sum, "wrapped sum", "wrapped", places=lambda s, of, x: of(x) % s.max_len),
    slip(Sum, "sum that stops", "stops", table=lambda s, of, x: nn.functional.pad(
        s.pe[: x.shape[1]], (0, 0, 0, max(0, x.shape[1] - s.max_len))).to(x.dtype)),
    slip(Sum, "all tokens share", "positions-shared", places=lambda s, of, x: of(x) // 2),
    slip(Sum, "from the end", "depends-on-length", places=lambda s, of, x: of(x).flip(0)),
    slip(Sum, "sum that writes", "input-written", forward=lambda s, of, x: x.add_(s.table(x))),
    slip(Sum, "truncates", "truncated-silently", forward=lambda s, of, x: of(x[:, : s.max_len])),
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
