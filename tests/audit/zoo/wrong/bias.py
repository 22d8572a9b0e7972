"""What is added to scores, with one slip each."""

import torch
from tests.audit.zoo.right.bias import (
    T5,
    Beit,
    Continuous,
    Euclidean,
    Short,
    SlicedWindow,
    Swin,
    WholeWindow,
    WindowAttention,
    chunks,
    of_square,
)
from tests.audit.zoo.specimen import wrong
from torch import nn

from posenc.numerics import slopes


def distances(q_len, k_len):
    return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)


def of_slopes(rate):
    """A bias of these slopes."""

    def bias(q_len, k_len):
        return -torch.tensor(rate)[:, None, None] * distances(q_len, k_len).abs()

    return bias


def linear(number):
    """Slopes 1/h."""
    return [1 / (h + 1) for h in range(number)]


class Alibi(nn.Module):
    heads = 8

    def forward(self, q_len, k_len):
        return of_slopes(slopes.alibi(self.heads))(q_len, k_len)


class Grows(Alibi):
    def forward(self, q_len, k_len):
        return -super().forward(q_len, k_len)


class FromZero(Alibi):
    """The queries behind a cache stand at 0."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads))
        distance = torch.arange(q_len)[:, None] - torch.arange(k_len)
        return -rate[:, None, None] * distance.abs()


class Absolute(Alibi):
    """Times the position of the query."""

    def forward(self, q_len, k_len):
        return super().forward(q_len, k_len) * (1 + torch.arange(k_len - q_len, k_len)[:, None])


class Relative(Alibi):
    """Distances as a share of the row."""

    def forward(self, q_len, k_len):
        return super().forward(q_len, k_len) / k_len


class Flat(Alibi):
    def forward(self, q_len, k_len):
        return torch.zeros(self.heads, q_len, k_len)


class OneHeadOnly(Alibi):
    """Seven heads without a bias."""

    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        made[1:] = 0
        return made


class Coarse(Alibi):
    """Slope × absolute position in bfloat16."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads)).bfloat16()
        keys = torch.arange(k_len).bfloat16()
        return (rate[:, None, None] * keys).expand(-1, q_len, -1)


class Caches(Alibi):
    """Keeps the bias of the first length."""

    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, q_len, k_len):
        if self.kept is None:
            self.kept = super().forward(300, 300)
        made = self.kept[:, :q_len, :k_len]
        return made


class WritesScores(Alibi):
    def forward(self, scores):
        scores += Alibi.forward(self, *scores.shape[-2:]).to(scores.dtype)
        return scores


class Turned(T5):
    """The query less the key."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        context = torch.arange(query_length)[:, None] + past_seen_tokens
        memory = torch.arange(key_length)[None, :]
        values = self.relative_attention_bias(self.bucket(context - memory))
        return values.permute([2, 0, 1]).unsqueeze(0)


class Transposed(T5):
    """Queries and keys exchanged."""

    def forward(self, query_length, key_length, past_seen_tokens=0):
        made = super().forward(key_length, query_length)
        return made.transpose(-1, -2)


class CausalTurned(Turned):
    """The same for the past alone: all of it reads one row."""

    def __init__(self):
        super().__init__(bidirectional=False)


class LateBorders(T5):
    """Logarithmic buckets begin one late."""

    def bucket(self, relative_position):
        sign = torch.sign(relative_position)
        moved = torch.where(
            relative_position.abs() > 8, relative_position - sign, relative_position
        )
        return super().bucket(moved)


class OddDistance(T5):
    """A maximal distance that no T5 has."""

    def __init__(self):
        super().__init__(max_distance=100)


class NoOffset(T5):
    """The queries behind a cache stand at 0."""

    def forward(self, query_length, key_length):
        return super().forward(query_length, key_length, 0)


class Unused(T5):
    """A scale that nothing reads."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))


class Detached(T5):
    def forward(self, query_length, key_length, past_seen_tokens=0):
        return super().forward(query_length, key_length, past_seen_tokens).detach()


def another_order():
    return of_slopes(tuple(reversed(slopes.alibi(8))))


def geometric():
    return of_slopes(slopes.geometric(12))


def harmonic():
    return of_slopes(linear(8))


def from_zero():
    """2^(−8h/H) with h from 0."""
    return of_slopes([2.0 ** (-h) for h in range(8)])


def one_sign():
    """One head with the other sign."""
    rate = list(slopes.alibi(8))
    rate[3] = -rate[3]
    return of_slopes(rate)


def one_slope():
    """One head a hundredth too steep."""
    rate = list(slopes.alibi(8))
    rate[3] *= 1.01
    return of_slopes(rate)


class HalfAsFar(Alibi):
    """Half of the slope from 200 keys on."""

    def forward(self, q_len, k_len):
        made, apart = super().forward(q_len, k_len), distances(q_len, k_len).abs()
        return torch.where(apart > 200, made / 2, made)


class ClippedFar(Alibi):
    """As far as 64 keys, and no more beyond."""

    def forward(self, q_len, k_len):
        rate = torch.tensor(slopes.alibi(self.heads))[:, None, None]
        return -rate * distances(q_len, k_len).abs().clamp(max=64)


def chunks_ahead(q_len, k_len):
    """Chunks of 8 tokens, in which later keys are counted from the first token of the row."""
    keys = torch.arange(k_len)
    return chunks(q_len, k_len) - 0.1 * keys * (distances(q_len, k_len) < 0)


class OneFlatHeadByKey(Alibi):
    """The flattest head takes a little from the position of the key."""

    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        made[7] += 0.02 * torch.sin(3.0 * torch.arange(k_len))
        return made


class FarBuckets(T5):
    """Another row beyond 300 keys."""

    def bucket(self, relative_position):
        return super().bucket(relative_position) - (relative_position.abs() > 300).long()


class MixedOnOneSide(Swin):
    """Rows and columns of keys are exchanged."""

    def __init__(self, side=7):
        super().__init__(side)
        points, reach = of_square(side), 2 * side - 1
        relative = points[:, None] - points.flip(-1) + side - 1
        self.relative_position_index = relative[..., 0] * reach + relative[..., 1]


class MixedInAttention(WindowAttention):
    """The same beside projections, which learn more numbers than there are pairs of tokens."""

    def __init__(self):
        super().__init__()
        self.inner.relative_position_index = MixedOnOneSide(7).relative_position_index


class ColumnsFirstInAttention(WindowAttention):
    """The index has keys column after column, where they come row after row."""

    def __init__(self):
        super().__init__()
        index = self.inner.relative_position_index
        self.inner.relative_position_index = index.unflatten(1, (7, 7)).mT.flatten(1)


class ContinuousByColumns(Continuous):
    """The same for a network of more numbers than there are pairs, of which many share one."""

    def __init__(self):
        super().__init__((4, 4))
        self.index = self.index.unflatten(1, (4, 4)).mT.flatten(1)


class HarmonicInAttention(nn.Module):
    """ALiBi with slopes 1/h, of which the projections beside it learn nothing."""

    def __init__(self, num_heads=8, dim=64):
        super().__init__()
        self.num_heads, self.qkv = num_heads, nn.Linear(dim, 3 * dim)

    def bias(self, q_len, k_len):
        return of_slopes(linear(self.num_heads))(q_len, k_len)


class Reshaped(Swin):
    """Heads are taken to come first in what is gathered."""

    def forward(self, q_len, k_len):
        tokens = len(self.relative_position_index)
        made = self.table[self.relative_position_index].reshape(-1, tokens, tokens)
        return made[:, :q_len, :k_len]


class ReshapedWindow(WholeWindow):
    """The same of whole windows, which takes them alone."""

    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len)
        return made.permute(1, 2, 0).reshape(made.shape)


class OneAxisOfSquare(Swin):
    """Columns alone: a distance that wraps around."""

    def __init__(self, side=7):
        super().__init__(side)
        self.relative_position_index = self.relative_position_index % (2 * side - 1)


class ClassByPlace(Beit):
    """The class token takes something else from each patch."""

    def forward(self, q_len, k_len):
        made = super().forward(q_len, k_len).clone()
        made[:, 0] += torch.arange(k_len)
        return made


class OffInOneCorner(Euclidean):
    """One pair of patches receives another number."""

    def __init__(self, side=8):
        super().__init__(side)
        self.bias[:, -1, 1] += 1  # the pair of the first and the last but one lies alike


class ShortThatCaches(Short):
    """A short table, doubled for rows below the longest so far."""

    def __init__(self):
        super().__init__()
        self.most = 0

    def forward(self, q_len, k_len):
        if k_len > self.bias.shape[-1]:
            raise ValueError(f"{k_len} tokens are too many")
        self.most = max(self.most, k_len)
        return super().forward(q_len, k_len) * (1 + (k_len < self.most))


class SlicedMixed(SlicedWindow):
    """Columns of keys stand for differences of columns."""

    def __init__(self):
        super().__init__()
        token = torch.arange(32)
        rows, columns = token // 8, token % 8
        self.index = (rows[:, None] - rows + 3) * 15 + columns


WRONG = [
    wrong(SlicedMixed, "a cut window by the keys' columns", "depends-on-absolute-positions"),
    wrong(MixedOnOneSide, "axes of keys exchanged", "depends-on-absolute-positions"),
    wrong(
        MixedInAttention,
        "axes of keys exchanged in attention",
        "depends-on-absolute-positions",
        kind="bias",
        call="subject.bias()",
    ),
    wrong(
        ColumnsFirstInAttention,
        "keys by columns in attention",
        "depends-on-absolute-positions",
        kind="bias",
        call="subject.bias()",
    ),
    wrong(ContinuousByColumns, "a network with keys by columns", "depends-on-absolute-positions"),
    wrong(
        HarmonicInAttention,
        "harmonic slopes in attention",
        "wrong-slopes",
        call="subject.bias(q_len, k_len)",
    ),
    wrong(Reshaped, "gathered table reshaped", "depends-on-absolute-positions"),
    wrong(ReshapedWindow, "gathered windows reshaped", "depends-on-absolute-positions"),
    wrong(OneAxisOfSquare, "one axis of a square", "depends-on-absolute-positions"),
    wrong(ClassByPlace, "class token by place", "depends-on-absolute-positions"),
    wrong(OffInOneCorner, "off in one corner", "depends-on-absolute-positions"),
    wrong(ShortThatCaches, "a short table by the longest row", "history-changes-result"),
    wrong(one_slope, "one head too steep", "wrong-slopes"),
    wrong(HalfAsFar, "half as far", "far-keys-otherwise"),
    wrong(ClippedFar, "clipped far", "far-keys-otherwise"),
    wrong(chunks_ahead, "later keys of chunks by place", "depends-on-absolute-positions"),
    wrong(OneFlatHeadByKey, "one flat head by key", "depends-on-absolute-positions"),
    wrong(FarBuckets, "far buckets", "buckets-off"),
    wrong(geometric, "geometric slopes for 12 heads", "slopes-of-other-head-counts"),
    wrong(another_order, "slopes in another order", "slopes-in-another-order"),
    wrong(harmonic, "harmonic slopes", "wrong-slopes"),
    wrong(from_zero, "slopes from 1 on", "wrong-slopes"),
    wrong(one_sign, "one head grows", "wrong-sign"),
    wrong(Grows, "grows with distance", "wrong-sign"),
    wrong(FromZero, "ALiBi forgets the cache", "bias-without-cache-offset"),
    wrong(Absolute, "times the position", "depends-on-absolute-positions"),
    wrong(Relative, "as a share", "depends-on-length"),
    wrong(Flat, "flat", "encodes-nothing"),
    wrong(OneHeadOnly, "one head only", "encodes-nothing"),
    wrong(Coarse, "coarse", "bias-in-16-bits"),
    wrong(Caches, "the first rows of a kept square", "bias-without-cache-offset"),
    wrong(WritesScores, "writes", "input-written"),
    wrong(Turned, "T5 turned", "buckets-turned"),
    wrong(Transposed, "T5 transposed", "buckets-turned"),
    wrong(CausalTurned, "T5 of the future", "encodes-nothing", "buckets-turned"),
    wrong(LateBorders, "late borders", "buckets-off"),
    wrong(OddDistance, "odd distance", "buckets-off"),
    wrong(NoOffset, "T5 forgets the cache", "bias-without-cache-offset"),
    wrong(Unused, "unused parameter", "parameter-without-gradient"),
    wrong(Detached, "detached", "parameter-without-gradient"),
]
