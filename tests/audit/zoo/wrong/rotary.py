"""What is done to queries and keys, with one slip each."""

import torch
from tests.audit.zoo.right.rotary import OutsideOfAutocast
from tests.audit.zoo.specimen import slip, wrong
from torch import nn


def halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def neighbors(x):
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


def twice(rates):
    return torch.cat((rates, rates))


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

    def line(self, x):
        return torch.arange(x.shape[0])[:, None, None, None]

    def forward(self, x):
        """x: [batch, heads, seq, head_dim]"""
        angles = self.line(x) * twice(Turn.rates(Turn()))
        return (x * angles.cos() + halves(x) * angles.sin()).to(x.dtype)


class HeadAxis(BatchAxis):
    """By the number of the head."""

    def line(self, x):
        return torch.arange(x.shape[1])[None, :, None, None]


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


class SlicesToItsEnd(Turn):
    """A table that is cut where it is read: beyond its end nothing is left."""

    def __init__(self, max_len=256):
        super().__init__()
        self.max_len = max_len

    def forward(self, q, k, start_pos=0):
        """q: [batch, heads, seq, head_dim]"""
        at = torch.arange(self.max_len)[None, start_pos : start_pos + q.shape[2]]
        return super().forward(q, k, at)


class Dynamic(Turn):
    """The base follows the longest row so far."""

    longest = 0

    def turn(self, x, positions):
        self.longest = max(self.longest, int(positions.max()) + 1)
        if self.longest > 512:
            self.base = 10000.0 * (self.longest / 512) ** (self.dim / (self.dim - 2))
        return super().turn(x, positions)


class FirstDtype(Turn):
    """Keeps cosines in the dtype of whoever came first."""

    kept = None

    def turn(self, x, positions):
        if self.kept is None:
            both = twice(self.rates()) * torch.arange(2048)[:, None]
            self.kept = both.cos().to(x.dtype), both.sin().to(x.dtype)
        cos, sin = (t[positions][:, None] for t in self.kept)
        return x * cos + halves(x) * sin


class FirstPlaces(Turn):
    """A cache that is keyed by the number of positions, and not by the positions."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def waveform(self, positions):
        return self.cache.setdefault(positions.shape, super().waveform(positions))


class OtherDtype(Turn):
    """A sign that another dtype has not."""

    narrow = torch.float64

    def waveform(self, positions):
        cos, sin = super().waveform(positions)
        return cos, sin * self.sign

    def turn(self, x, positions):
        self.sign = -1 if x.dtype == self.narrow else 1
        return super().turn(x, positions)


class Backward(torch.autograd.Function):
    """Turns gradients as it turned content, where the transpose turns back."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return (x * cos + halves(x) * sin).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        return (gradient * cos + halves(gradient) * sin).to(gradient.dtype), None, None


class Part(Turn):
    """Turns the first half of the channels, and halves the rest."""

    def rates(self):
        return super().rates()[::2]

    def turn(self, x, positions):
        return torch.cat((super().turn(x[..., :16], positions), 0.5 * x[..., 16:]), -1)


def still(rates):
    rates[-1] = 0
    return rates


def by_neighbors(s, of, x, positions):
    both = s.angles(positions).repeat_interleave(2, -1)
    return (x * both.cos() + neighbors(x) * both.sin()).to(x.dtype)


def mixed(s, of, positions):
    both = s.angles(positions).repeat_interleave(2, -1)
    return both.cos(), both.sin()


def no_sign(s, of, x, positions):
    cos, sin = s.waveform(positions)
    a, b = x.chunk(2, -1)
    return (x * cos + torch.cat((b, a), -1) * sin).to(x.dtype)


def shares(share):
    """Powers of the base by another exponent."""
    line = torch.arange(0, 32, 2, dtype=torch.float64) / 32
    return lambda s, of: s.base ** -share(line)


LLAMA = {"model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "rope_theta": 1e4}
WRONG = [
    wrong(BatchAxis, "batch axis", "batch-axis-encoded"),
    wrong(HeadAxis, "head axis", "head-axis-encoded"),
    wrong(CastRates, "frequencies that are cast", "cast-breaks-it"),
    wrong(Writes, "writes", "input-written"),
    wrong(DeafToItsStart, "deaf to its start", "decoding-differs-from-prefill"),
    wrong(OneBehind, "one early behind a cache", "off-by-one-after-cache"),
    wrong(SlicesToItsEnd, "slices to its end, rotary", "truncated-silently"),
    wrong(Dynamic, "dynamic", "history-changes-result"),
    wrong(FirstDtype, "dtype of the first", "first-dtype-cached"),
    wrong(FirstPlaces, "places of the first call", "state-between-calls"),
    wrong(OtherDtype, "sign of float64", "depends-on-how-it-is-given"),
    wrong(Part, "the rest halved", "rest-changed"),
    slip(OtherDtype, "sign of bfloat16", "depends-on-how-it-is-given", "positions-in-16-bits",
         narrow=torch.bfloat16),
    slip(OutsideOfAutocast, "angles within autocast", "autocast-breaks-it", within=True),
    # exponents
    slip(Turn, "log10", "wrong-exponent", base=2.718281828459045**4),
    slip(Turn, "4i", "wrong-exponent", rates=shares(lambda share: 2 * share)),
    slip(Turn, "squared exponent", "unknown-frequencies", rates=shares(lambda share: share**2)),
    slip(Turn, "last pair still", "pair-never-turns", rates=lambda s, of: still(of())),
    slip(Turn, "frequencies in bfloat16", "frequencies-in-16-bits",
         rates=lambda s, of: of().bfloat16().double()),
    # waves
    slip(Turn, "no sign", "sign-missing", turn=no_sign),
    slip(Turn, "mixed pairing", "pairing-mixed", waveform=mixed),
    slip(Turn, "sine for cosine", "not-relative", waveform=lambda s, of, p: (of(p)[1],) * 2),
    slip(Turn, "table in bfloat16", "table-in-16-bits",
         waveform=lambda s, of, p: tuple(wave.bfloat16().float() for wave in of(p))),
    slip(Turn, "times 1.0005", "table-scaled", turn=lambda s, of, x, p: 1.0005 * of(x, p)),
    slip(Turn, "large numbers dropped", "depends-on-how-it-is-given",
         turn=lambda s, of, x, p: of(x * (x.abs() < 50), p)),
    slip(Turn, "gradients turned on", "gradient-otherwise",
         turn=lambda s, of, x, p: Backward.apply(x, *s.waveform(p))),
    # positions
    slip(Turn, "clamped", "clamped", max_len=512,
         places=lambda s, of, p: p.clamp(max=511).double()),
    slip(Turn, "wrapped", "wrapped", max_len=512, places=lambda s, of, p: (p % 512).double()),
    slip(Turn, "stops", "stops", max_len=512,
         places=lambda s, of, p: torch.where(p < 512, p, 0).double()),
    slip(Turn, "two tokens share", "positions-shared",
         places=lambda s, of, p: (p - (p >= 9).long()).double()),
    slip(Turn, "positions in bfloat16", "positions-in-16-bits",
         places=lambda s, of, p: p.bfloat16().double()),
    slip(Turn, "stretched", "depends-on-length",
         places=lambda s, of, p: p.double() * 16 / p.shape[1]),
    # configurations beside them
    slip(Turn, "pairing of another model", "pairing-of-the-other-convention",
         config=LLAMA, turn=by_neighbors),
    slip(Turn, "base of another model", "unlike-its-configuration",
         config=LLAMA | {"rope_theta": 5e5}),
    # keys
    slip(Turn, "only queries", "only-queries-rotated", keys=lambda s, of, k, p: k),
    slip(Turn, "only keys", "only-keys-rotated", forward=lambda s, of, q, k, p: (q, s.turn(k, p))),
    slip(Turn, "keys for queries", "sides-mixed",
         forward=lambda s, of, q, k, p: (s.turn(k, p), s.turn(q, p))),
    slip(Turn, "keys backwards", "keys-turned-backwards", keys=lambda s, of, k, p: of(k, -p)),
    slip(Turn, "keys twice as far", "keys-turned-otherwise", keys=lambda s, of, k, p: of(k, 2 * p)),
    slip(Turn, "far keys wrap", "keys-turned-otherwise", keys=lambda s, of, k, p: of(k, p % 512)),
    slip(Turn, "keys of the first row", "first-row-for-all",
         keys=lambda s, of, k, p: of(k, p[:1].expand(len(k), -1))),
    slip(Turn, "detached keys", "gradient-cut", keys=lambda s, of, k, p: of(k.detach(), p)),
    slip(Turn, "keys at narrow positions", "positions-in-16-bits",
         keys=lambda s, of, k, p: of(k, p.to(k.dtype))),
    slip(Turn, "keys in order", "positions-misread",
         keys=lambda s, of, k, p: of(k, p.sort(-1).values)),
]  # fmt: skip
