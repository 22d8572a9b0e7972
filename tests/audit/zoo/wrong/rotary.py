"""What is done to queries and keys, with one slip each."""

import torch
from tests.audit.zoo.arithmetic import halves, neighbors, powers
from tests.audit.zoo.right.rotary import OutsideOfAutocast, rotate_half
from tests.audit.zoo.specimen import slip, wrong
from torch import nn


def turned(x, cos, sin, pairs=halves):
    """Computed in float64 and rounded once."""
    return pairs(x.double(), cos, sin).to(x.dtype)


class Turn(nn.Module):
    """[batch, heads, seq, head_dim] by positions; the others change a line of it."""

    base, dim = 10000.0, 32

    def rates(self):
        return powers(self.dim, self.base, torch.float64)

    def places(self, positions):
        return positions.double()

    def waveform(self, positions):
        angles = self.places(positions)[:, None, :, None] * self.rates()
        return angles.cos(), angles.sin()

    def turn(self, x, positions):
        return turned(x, *self.waveform(positions))

    def keys(self, k, positions):
        return self.turn(k, positions)

    def forward(self, q, k, positions):
        return self.turn(q, positions), self.keys(k, positions)


class Started(Turn):
    """By the position of the first token; the others read another line."""

    def line(self, start, length):
        return torch.arange(start, start + length)

    def forward(self, q, k, start_pos: int = 0):
        """q: [batch, heads, seq, head_dim]"""
        return super().forward(q, k, self.line(start_pos, q.shape[2])[None])


class CastRates(Turn):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv", powers(self.dim))

    def rates(self):
        return self.inv.float()


class Dynamic(Turn):
    """The base follows the longest row so far."""

    longest = 0

    def turn(self, x, positions):
        self.longest = max(self.longest, int(positions.max()) + 1)
        if self.longest > 512:
            self.base = 10000.0 * (self.longest / 512) ** (self.dim / (self.dim - 2))
        return super().turn(x, positions)


class Backward(torch.autograd.Function):
    """Turns gradients as it turned content, where the transpose turns back."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return turned(x, cos, sin)

    @staticmethod
    def backward(ctx, gradient):
        return turned(gradient, *ctx.saved_tensors), None, None


def by_line(x, line):
    angles = line * powers(32, dtype=torch.float64)
    return turned(x, angles.cos(), angles.sin())


def batch_axis(x):
    """x: [batch, heads, seq, head_dim]"""
    return by_line(x, torch.arange(x.shape[0])[:, None, None, None])


def head_axis(x):
    """x: [batch, heads, seq, head_dim]"""
    return by_line(x, torch.arange(x.shape[1])[None, :, None, None])


def still(rates):
    rates[-1] = 0
    return rates


def mixed(s, of, x, positions):
    cos, sin = (wave.repeat_interleave(2, -1) for wave in s.waveform(positions))
    return (x * cos + rotate_half(x) * sin).to(x.dtype)


def no_sign(s, of, x, positions):
    (cos, sin), (a, b) = s.waveform(positions), x.chunk(2, -1)
    return torch.cat((a * cos + b * sin, b * cos + a * sin), -1).to(x.dtype)


def first_dtype(s, of, x, positions):
    """Keeps cosines in the dtype of whoever came first."""
    made = s.waveform(torch.arange(2048)[None])
    kept = vars(s).setdefault("kept", [wave[0, 0].to(x.dtype) for wave in made])
    return halves(x, *(wave[positions][:, None] for wave in kept))


def signed(narrow):
    """The other way, where content has this dtype."""
    return lambda s, of, x, p: of(x, -p if x.dtype == narrow else p)


def shares(share):
    """Powers of the base by another exponent."""
    line = torch.arange(0, 32, 2, dtype=torch.float64) / 32
    return lambda s, of: s.base ** -share(line)


LLAMA = {"model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "rope_theta": 1e4}
WRONG = [
    wrong(batch_axis, "batch axis", "batch-axis-encoded"),
    wrong(head_axis, "head axis", "head-axis-encoded"),
    wrong(CastRates, "frequencies that are cast", "cast-breaks-it"),
    wrong(Dynamic, "dynamic", "history-changes-result"),
    slip(OutsideOfAutocast, "angles within autocast", "autocast-breaks-it", within=True),
    # behind a cache
    slip(Started, "deaf to its start", "decoding-differs-from-prefill",
         line=lambda s, of, start, length: of(0, length)),
    slip(Started, "one early behind a cache", "off-by-one-after-cache",
         line=lambda s, of, start, length: of(max(start - 1, 0), length)),
    slip(Started, "slices to its end, rotary", "truncated-silently", max_len=256,
         line=lambda s, of, start, length: of(0, s.max_len)[start : start + length]),
    # exponents
    slip(Turn, "log10", "wrong-exponent", base=2.718281828459045**4),
    slip(Turn, "4i", "wrong-exponent", rates=shares(lambda share: 2 * share)),
    slip(Turn, "squared exponent", "unknown-frequencies", rates=shares(lambda share: share**2)),
    slip(Turn, "last pair still", "pair-never-turns", rates=lambda s, of: still(of())),
    slip(Turn, "frequencies in bfloat16", "frequencies-in-16-bits",
         rates=lambda s, of: of().bfloat16().double()),
    # waves
    slip(Turn, "no sign", "sign-missing", turn=no_sign),
    slip(Turn, "mixed pairing", "pairing-mixed", turn=mixed),
    slip(Turn, "sine for cosine", "not-relative", waveform=lambda s, of, p: (of(p)[1],) * 2),
    slip(Turn, "table in bfloat16", "table-in-16-bits",
         waveform=lambda s, of, p: tuple(wave.bfloat16().float() for wave in of(p))),
    slip(Turn, "dtype of the first", "first-dtype-cached", turn=first_dtype),
    slip(Turn, "places of the first call", "state-between-calls",  # a cache by shapes
         waveform=lambda s, of, p: vars(s).setdefault(str(p.shape), of(p))),
    slip(Turn, "sign of float64", "depends-on-how-it-is-given", turn=signed(torch.float64)),
    slip(Turn, "sign of bfloat16", "depends-on-how-it-is-given", "positions-in-16-bits",
         turn=signed(torch.bfloat16)),
    slip(Turn, "the rest halved", "rest-changed", rates=lambda s, of: of()[::2],
         turn=lambda s, of, x, p: torch.cat((of(x[..., :16], p), 0.5 * x[..., 16:]), -1)),
    slip(Turn, "times 1.0005", "table-scaled", turn=lambda s, of, x, p: 1.0005 * of(x, p)),
    slip(Turn, "writes", "input-written", turn=lambda s, of, x, p: x.copy_(of(x, p))),
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
    slip(Turn, "pairing of another model", "pairing-of-the-other-convention", config=LLAMA,
         turn=lambda s, of, x, p: turned(x, *s.waveform(p), pairs=neighbors)),
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
