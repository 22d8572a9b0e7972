"""What is done to queries and keys, with one slip each."""

import math

import torch
from tests.audit.zoo.specimen import wrong
from torch import nn


def halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def neighbors(x):
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


class Turn(nn.Module):
    """[batch, heads, seq, head_dim] by positions; the others change a line of it."""

    base, dim = 10000.0, 32

    def rates(self):
        return self.base ** -(torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)

    def places(self, positions):
        return positions.double()

    def angles(self, positions):
        return self.places(positions)[:, None, :, None] * self.rates()

    def waveform(self, positions):
        angles = self.angles(positions)
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()

    def turn(self, x, positions):
        cos, sin = self.waveform(positions)
        return (x * cos + halves(x) * sin).to(x.dtype)

    def keys(self, k, positions):
        return self.turn(k, positions)

    def forward(self, q, k, positions):
        return self.turn(q, positions), self.keys(k, positions)


class BatchAxis(nn.Module):
    """x: [batch, heads, seq, head_dim], turned by the row of the batch."""

    def forward(self, x):
        rates = 10000.0 ** -(torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
        angles = torch.arange(x.shape[0])[:, None, None, None] * torch.cat((rates, rates))
        return (x * angles.cos() + halves(x) * angles.sin()).to(x.dtype)


class HeadAxis(nn.Module):
    """x: [batch, heads, seq, head_dim], turned by the number of the head."""

    def forward(self, x):
        rates = 10000.0 ** -(torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
        angles = torch.arange(x.shape[1])[None, :, None, None] * torch.cat((rates, rates))
        return (x * angles.cos() + halves(x) * angles.sin()).to(x.dtype)


class OnlyQueries(Turn):
    def keys(self, k, positions):
        return k


class OnlyKeys(Turn):
    def forward(self, q, k, positions):
        return q, self.turn(k, positions)


class KeysBackwards(Turn):
    def keys(self, k, positions):
        return self.turn(k, -positions)


class KeysLate(Turn):
    """Keys at the next position."""

    def keys(self, k, positions):
        return self.turn(k, 2 * positions)


class NoSign(Turn):
    """Both sines are positive."""

    def turn(self, x, positions):
        cos, sin = self.waveform(positions)
        a, b = x.chunk(2, -1)
        return (x * cos + torch.cat((b, a), -1) * sin).to(x.dtype)


class MixedPairing(Turn):
    """Cosines for neighbors, halves turned."""

    def waveform(self, positions):
        both = self.angles(positions).repeat_interleave(2, -1)
        return both.cos(), both.sin()


class OneStill(Turn):
    """The last pair never turns."""

    def rates(self):
        made = super().rates()
        made[-1] = 0
        return made


class Fourfold(Turn):
    """4i instead of 2i."""

    def rates(self):
        return self.base ** -(2 * torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)


class Squared(Turn):
    """Exponents squared."""

    def rates(self):
        return self.base ** -((torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim) ** 2)


class SineForCosine(Turn):
    def waveform(self, positions):
        _, sin = super().waveform(positions)
        return sin, sin


class Clamps(Turn):
    max_len = 512

    def places(self, positions):
        return positions.clamp(max=self.max_len - 1).double()


class Wraps(Turn):
    max_len = 512

    def places(self, positions):
        return (positions % self.max_len).double()


class Stops(Turn):
    """Nothing turns beyond a length."""

    max_len = 512

    def places(self, positions):
        return torch.where(positions < self.max_len, positions, 0).double()


class SharesPositions(Turn):
    def places(self, positions):
        return (positions - (positions >= 9).long()).double()


class Bfloat16Positions(Turn):
    def places(self, positions):
        return positions.bfloat16().double()


class Bfloat16Rates(Turn):
    def rates(self):
        return super().rates().bfloat16().double()


class Bfloat16Table(Turn):
    def waveform(self, positions):
        cos, sin = super().waveform(positions)
        return cos.bfloat16().float(), sin.bfloat16().float()


class CastRates(Turn):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv", Turn.rates(self).float())

    def rates(self):
        return self.inv.float()


class Writes(Turn):
    def turn(self, x, positions):
        cos, sin = self.waveform(positions)
        turned = halves(x) * sin
        x.mul_(cos).add_(turned)
        return x


class DeafToItsStart(Turn):
    """It takes the first position of its tokens, and leaves it out."""

    def forward(self, q, k, start_pos: int = 0):
        positions = torch.arange(q.shape[2])[None]
        return self.turn(q, positions), self.turn(k, positions)


class OneBehind(Turn):
    """One token behind a cache stands one too early."""

    def forward(self, q, k, offset=0):
        late = 1 if offset > 0 else 0
        positions = torch.arange(offset - late, offset - late + q.shape[2])[None]
        return self.turn(q, positions), self.turn(k, positions)


class Dynamic(Turn):
    """The base follows the longest row so far."""

    def __init__(self):
        super().__init__()
        self.longest = 0

    def turn(self, x, positions):
        self.longest = max(self.longest, int(positions.max()) + 1)
        if self.longest > 512:
            self.base = 10000.0 * (self.longest / 512) ** (self.dim / (self.dim - 2))
        return super().turn(x, positions)


class FirstDtype(Turn):
    """Keeps cosines in the dtype of whoever came first."""

    def __init__(self):
        super().__init__()
        self.kept = None

    def turn(self, x, positions):
        if self.kept is None:
            both = torch.cat((self.rates(), self.rates())) * torch.arange(2048)[:, None]
            self.kept = both.cos().to(x.dtype), both.sin().to(x.dtype)
        cos, sin = (t[positions][:, None] for t in self.kept)
        return x * cos + halves(x) * sin


class ByLength(Turn):
    """Stretched to the length of the row."""

    def places(self, positions):
        return positions.double() * 16 / positions.shape[1]


class Interleaved(Turn):
    """Right in itself; the configuration beside it is of a model of halves."""

    def __init__(self):
        super().__init__()
        self.config = {
            "model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "rope_theta": 1e4,
        }  # fmt: skip

    def turn(self, x, positions):
        both = self.angles(positions).repeat_interleave(2, -1)
        return (x * both.cos() + neighbors(x) * both.sin()).to(x.dtype)


class OtherBase(Turn):
    """Base 10,000 beside a configuration of 500,000."""

    def __init__(self):
        super().__init__()
        self.config = {
            "model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "rope_theta": 5e5,
        }  # fmt: skip


class FirstPlaces(Turn):
    """A cache that is keyed by the number of positions, and not by the positions."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def waveform(self, positions):
        return self.cache.setdefault(positions.shape, super().waveform(positions))


class OtherDtype(Turn):
    """A sign that float64 has not."""

    def waveform(self, positions):
        cos, sin = super().waveform(positions)
        return cos, sin * self.sign

    def turn(self, x, positions):
        self.sign = -1 if x.dtype == torch.float64 else 1
        return super().turn(x, positions)


class NarrowSign(OtherDtype):
    """A sign that bfloat16 has not."""

    def turn(self, x, positions):
        self.sign = -1 if x.dtype == torch.bfloat16 else 1
        return Turn.turn(self, x, positions)


class Log10(Turn):
    """exp(−log10(base) · 2i/d)."""

    base = math.exp(4)


WRONG = [
    wrong(Log10, "log10", "wrong-exponent"),
    wrong(BatchAxis, "batch axis", "batch-axis-encoded"),
    wrong(HeadAxis, "head axis", "head-axis-encoded"),
    wrong(OnlyQueries, "only queries", "only-queries-rotated"),
    wrong(OnlyKeys, "only keys", "only-keys-rotated"),
    wrong(KeysBackwards, "keys backwards", "keys-turned-backwards"),
    wrong(KeysLate, "keys twice as far", "keys-turned-otherwise"),
    wrong(NoSign, "no sign", "sign-missing"),
    wrong(MixedPairing, "mixed pairing", "pairing-mixed"),
    wrong(OneStill, "last pair still", "pair-never-turns"),
    wrong(Fourfold, "4i", "wrong-exponent"),
    wrong(Squared, "squared exponent", "unknown-frequencies"),
    wrong(SineForCosine, "sine for cosine", "not-relative"),
    wrong(Clamps, "clamped", "clamped"),
    wrong(Wraps, "wrapped", "wrapped"),
    wrong(Stops, "stops", "stops"),
    wrong(SharesPositions, "two tokens share", "positions-shared"),
    wrong(Bfloat16Positions, "positions in bfloat16", "positions-in-16-bits"),
    wrong(Bfloat16Rates, "frequencies in bfloat16", "frequencies-in-16-bits"),
    wrong(Bfloat16Table, "table in bfloat16", "table-in-16-bits"),
    wrong(CastRates, "frequencies that are cast", "cast-breaks-it"),
    wrong(Writes, "writes", "input-written"),
    wrong(DeafToItsStart, "deaf to its start", "decoding-differs-from-prefill"),
    wrong(OneBehind, "one early behind a cache", "off-by-one-after-cache"),
    wrong(Dynamic, "dynamic", "history-changes-result"),
    wrong(FirstDtype, "dtype of the first", "first-dtype-cached"),
    wrong(ByLength, "stretched", "depends-on-length"),
    wrong(FirstPlaces, "places of the first call", "state-between-calls"),
    wrong(OtherDtype, "sign of float64", "depends-on-how-it-is-given"),
    wrong(NarrowSign, "sign of bfloat16", "depends-on-how-it-is-given", "positions-in-16-bits"),
    wrong(Interleaved, "pairing of another model", "pairing-of-the-other-convention"),
    wrong(OtherBase, "base of another model", "unlike-its-configuration"),
]
