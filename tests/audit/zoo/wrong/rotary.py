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


class KeysOfAnotherBase(Turn):
    def keys(self, k, positions):
        other = Turn()
        other.base = 500_000.0
        return other.turn(k, positions)


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


class MixedOtherwise(Turn):
    """Cosines for halves, neighbors turned."""

    def turn(self, x, positions):
        cos, sin = self.waveform(positions)
        return (x * cos + neighbors(x) * sin).to(x.dtype)


class OneStill(Turn):
    """The last pair never turns."""

    def rates(self):
        made = super().rates()
        made[-1] = 0
        return made


class FirstStill(Turn):
    """The first pair never turns."""

    def rates(self):
        made = super().rates()
        made[0] = 0
        return made


class Fourfold(Turn):
    """4i instead of 2i."""

    def rates(self):
        return self.base ** -(2 * torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)


class Single(Turn):
    """i instead of 2i."""

    def rates(self):
        return self.base ** -(torch.arange(self.dim // 2, dtype=torch.float64) / self.dim)


class ToTheLast(Turn):
    """i / (d/2 − 1) instead of i / (d/2)."""

    def rates(self):
        return self.base ** -torch.linspace(0, 1, self.dim // 2, dtype=torch.float64)


class Growing(Turn):
    """+2i instead of −2i."""

    def rates(self):
        return self.base ** (torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim)


class HeadWidth(Turn):
    """Half of the channels turn, at the speeds of the whole width."""

    def turn(self, x, positions):
        turned, kept = x.chunk(2, -1)
        angles = self.angles(positions)[..., : self.dim // 4]
        both = torch.cat((angles, angles), -1)
        return torch.cat(
            ((turned * both.cos() + halves(turned) * both.sin()).to(x.dtype), kept), -1
        )


class HeadWidthOfAQuarter(Turn):
    """A quarter of the channels turn, at the speeds of the whole width, as GPT-NeoX' would."""

    def turn(self, x, positions):
        turned, kept = x.tensor_split((x.shape[-1] // 4,), -1)
        angles = self.angles(positions)[..., : self.dim // 8]
        both = torch.cat((angles, angles), -1)
        return torch.cat(
            ((turned * both.cos() + halves(turned) * both.sin()).to(x.dtype), kept), -1
        )


class SingleOfAnother(Single):
    """i instead of 2i, of base 500,000."""

    base = 500_000.0


class Squared(Turn):
    """Exponents squared."""

    def rates(self):
        return self.base ** -((torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim) ** 2)


class Reversed(Turn):
    """The slow pairs first."""

    def rates(self):
        return super().rates().flip(0)


class Bigger(Turn):
    """Everything times 1.3."""

    def waveform(self, positions):
        cos, sin = super().waveform(positions)
        return 1.3 * cos, 1.3 * sin


class SineForCosine(Turn):
    def waveform(self, positions):
        _, sin = super().waveform(positions)
        return sin, sin


class Shifted(Turn):
    """The sine of the position after."""

    def waveform(self, positions):
        return super().waveform(positions)[0], super().waveform(positions + 1)[1]


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


class ContentDtypePositions(Turn):
    """Positions and angles in the dtype of the content."""

    def turn(self, x, positions):
        angles = positions.to(x.dtype)[:, None, :, None] * self.rates().to(x.dtype)
        both = torch.cat((angles, angles), -1)
        return x * both.cos() + halves(x) * both.sin()


class Bfloat16Rates(Turn):
    def rates(self):
        return super().rates().bfloat16().double()


class Float16Rates(Turn):
    def rates(self):
        return super().rates().half().double()


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


class FirstRowOnly(Turn):
    """All rows are turned by the positions of the first."""

    def places(self, positions):
        return positions[:1].double()


class FromZero(Turn):
    """One token always stands at 0."""

    def places(self, positions):
        return (
            positions.double() - positions[:, :1] if positions.shape[1] == 1 else positions.double()
        )


class DeafToItsStart(Turn):
    """It takes the first position of its tokens, and leaves it out."""

    def forward(self, q, k, start_pos: int = 0):
        positions = torch.arange(q.shape[2])[None]
        return self.turn(q, positions), self.turn(k, positions)


class KeysFromTheEnd(Turn):
    """Keys count from the last token on."""

    def forward(self, q, k):
        positions = torch.arange(q.shape[2])[None]
        return self.turn(q, positions), self.turn(k, positions.flip(1))


class OneBehind(Turn):
    """One token behind a cache stands one too early."""

    def forward(self, q, k, offset=0):
        late = 1 if offset > 0 else 0
        positions = torch.arange(offset - late, offset - late + q.shape[2])[None]
        return self.turn(q, positions), self.turn(k, positions)


class KeysOneBehind(Turn):
    """The same for keys alone."""

    def forward(self, q, k, offset=0):
        positions = torch.arange(offset, offset + q.shape[2])[None]
        late = positions - (1 if offset > 0 else 0)
        return self.turn(q, positions), self.turn(k, late)


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


class Cuts(Turn):
    """No gradient reaches queries."""

    def turn(self, x, positions):
        return super().turn(x.detach(), positions)


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


class NoScaling(Turn):
    """Without the Llama 3 scaling that its configuration has."""

    base = 500_000.0

    def __init__(self):
        super().__init__()
        self.config = {
            "model_type": "llama", "hidden_size": 128, "num_attention_heads": 4,
            "max_position_embeddings": 131072, "rope_theta": 5e5,
            "rope_scaling": {
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
            },
        }  # fmt: skip


class KeysOneLate(Turn):
    """Keys one position further than queries: relative, and another function."""

    def keys(self, k, positions):
        return self.turn(k, positions + 1)


class FirstPlaces(Turn):
    """A cache that is keyed by the number of positions, and not by the positions."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def waveform(self, positions):
        return self.cache.setdefault(positions.shape, super().waveform(positions))


class ByBatch(Turn):
    """Positions that a batch of an odd number of rows moves."""

    def places(self, positions):
        return positions.double() + len(positions) % 2 * (len(positions) > 1)


class ReadsStraight(Turn):
    """Reads memory as if it were contiguous."""

    def turn(self, x, positions):
        return super().turn(torch.as_strided(x, x.shape, torch.empty(x.shape).stride()), positions)


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


class FewKeys(Turn):
    """Fewer key heads than query heads come out as they went in."""

    def forward(self, q, k, positions):
        alike = q.shape[1] == k.shape[1]
        return self.turn(q, positions), self.turn(k, positions) if alike else k


class Sorts(Turn):
    """Positions in order, whatever order they came in."""

    def places(self, positions):
        return positions.sort(-1).values.double()


class InTraining(Turn):
    """Half the angles while training."""

    def rates(self):
        return super().rates() / (2 if self.training else 1)


def factory(kind):
    """A model whose class of this name has no arguments."""
    return kind


class LastHeadStays(Turn):
    """The last head of queries comes out as it went in."""

    def forward(self, q, k, position_ids):
        angles = torch.cat((position_ids[..., None] * self.rates(),) * 2, -1)[:, None]
        turn = lambda x: (x * angles.cos() + halves(x) * angles.sin()).to(x.dtype)  # noqa: E731
        return torch.cat((turn(q)[:, :-1], q[:, -1:]), 1), turn(k)


class ChunksShare(Turn):
    """Up to four tokens behind a cache are turned as the first of them."""

    def forward(self, q, k, start_pos=0):
        """q: [batch, heads, seq, head_dim]"""
        seq = q.shape[2]
        shares = start_pos > 0 and seq <= 4
        line = torch.full((1, seq), start_pos) if shares else start_pos + torch.arange(seq)[None]
        return super().forward(q, k, line)


class DividesWhole(Turn):
    """2i // d is 0 for each pair."""

    def rates(self):
        return self.base ** -(torch.arange(0, self.dim, 2) // self.dim).double()


class InTens(Turn):
    """Every position stands for ten tokens, more than short rows have."""

    def forward(self, q, k):
        line = (torch.arange(q.shape[2]) // 10)[None]
        return self.turn(q, line), self.turn(k, line)


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
    wrong(KeysOfAnotherBase, "keys of another base", "keys-turned-otherwise"),
    wrong(NoSign, "no sign", "sign-missing"),
    wrong(MixedPairing, "mixed pairing", "pairing-mixed"),
    wrong(MixedOtherwise, "mixed pairing, otherwise", "pairing-mixed"),
    wrong(OneStill, "last pair still", "pair-never-turns"),
    wrong(FirstStill, "first pair still", "pair-never-turns"),
    wrong(Fourfold, "4i", "wrong-exponent"),
    wrong(Single, "i", "wrong-exponent"),
    wrong(ToTheLast, "to the last", "wrong-exponent"),
    wrong(Growing, "sign of the exponent", "wrong-exponent"),
    wrong(HeadWidth, "width of the head", "wrong-exponent"),
    wrong(HeadWidthOfAQuarter, "width of the head, a quarter", "wrong-exponent"),
    wrong(SingleOfAnother, "i, of another base", "wrong-exponent"),
    wrong(Squared, "squared exponent", "unknown-frequencies"),
    wrong(Reversed, "slow first", "unknown-frequencies"),
    wrong(Bigger, "times 1.3", "table-scaled"),
    wrong(SineForCosine, "sine for cosine", "not-relative"),
    wrong(Shifted, "sine of another position", "not-relative"),
    wrong(Clamps, "clamped", "clamped"),
    wrong(Wraps, "wrapped", "wrapped"),
    wrong(Stops, "stops", "stops"),
    wrong(SharesPositions, "two tokens share", "positions-shared"),
    wrong(Bfloat16Positions, "positions in bfloat16", "positions-in-16-bits"),
    wrong(ContentDtypePositions, "positions in the content's dtype", "positions-in-16-bits"),
    wrong(InTens, "ten tokens share", "positions-shared"),
    wrong(DividesWhole, "exponent of an integer division", "wrong-exponent"),
    wrong(Bfloat16Rates, "frequencies in bfloat16", "frequencies-in-16-bits"),
    wrong(Float16Rates, "frequencies in float16", "frequencies-in-16-bits"),
    wrong(Bfloat16Table, "table in bfloat16", "table-in-16-bits"),
    wrong(CastRates, "frequencies that are cast", "cast-breaks-it"),
    wrong(Writes, "writes", "input-written"),
    wrong(FirstRowOnly, "positions of the first row", "padding-shifts-positions"),
    wrong(FromZero, "one token stands at 0", "decoding-differs-from-prefill"),
    wrong(DeafToItsStart, "deaf to its start", "decoding-differs-from-prefill"),
    wrong(KeysFromTheEnd, "keys from the end", "depends-on-length"),
    wrong(OneBehind, "one early behind a cache", "off-by-one-after-cache"),
    wrong(KeysOneBehind, "keys early behind a cache", "off-by-one-after-cache"),
    wrong(Dynamic, "dynamic", "history-changes-result"),
    wrong(FirstDtype, "dtype of the first", "first-dtype-cached"),
    wrong(ByLength, "stretched", "depends-on-length"),
    wrong(KeysOneLate, "keys one late", "keys-turned-otherwise"),
    wrong(FirstPlaces, "places of the first call", "state-between-calls"),
    wrong(ByBatch, "by the batch", "depends-on-how-it-is-given"),
    wrong(ReadsStraight, "strides unread", "depends-on-how-it-is-given"),
    wrong(OtherDtype, "sign of float64", "depends-on-how-it-is-given"),
    wrong(NarrowSign, "sign of bfloat16", "depends-on-how-it-is-given", "positions-in-16-bits"),
    wrong(FewKeys, "few keys unturned", "depends-on-how-it-is-given"),
    wrong(Sorts, "positions sorted", "positions-misread"),
    wrong(InTraining, "otherwise in training", "depends-on-how-it-is-given"),
    wrong(Cuts, "detached content", "gradient-cut"),
    wrong(Interleaved, "pairing of another model", "pairing-of-the-other-convention"),
    wrong(OtherBase, "base of another model", "unlike-its-configuration"),
    wrong(NoScaling, "scaling left out", "unlike-its-configuration"),
    wrong(LastHeadStays, "the last head stays", "head-axis-encoded"),
    wrong(ChunksShare, "chunks share a position", "positions-shared", length=600),
]
