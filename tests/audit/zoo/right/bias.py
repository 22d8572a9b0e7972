"""What public code adds to scores, in its usual styles."""

import math

import torch
from tests.audit.zoo.specimen import right
from torch import nn


def slopes(n_heads):
    """The slopes of ALiBi's authors."""

    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return power_of_2(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    return power_of_2(closest) + slopes(2 * closest)[0::2][: n_heads - closest]


def alibi(q_len, k_len):
    """ALiBi of 8 heads for the last queries of a row."""
    q = torch.arange(k_len - q_len, k_len)[:, None]
    k = torch.arange(k_len)[None, :]
    return -torch.tensor(slopes(8))[:, None, None] * (q - k).abs()


class AddedALiBi(nn.Module):
    """ALiBi of 12 heads, added to scores."""

    def __init__(self, num_heads=12):
        super().__init__()
        self.num_heads = num_heads
        self.register_buffer("slopes", torch.tensor(slopes(num_heads)))

    def forward(self, scores):
        q_len, k_len = scores.shape[-2:]
        q = torch.arange(k_len - q_len, k_len, device=scores.device)[:, None]
        distance = (q - torch.arange(k_len, device=scores.device)).abs()
        return scores - (self.slopes[:, None, None] * distance).to(scores.dtype)


def bloom(attention_mask, num_heads, dtype):
    """Bloom's: slope times the position of the key."""
    batch, seq = attention_mask.shape
    rate = torch.tensor(slopes(num_heads))
    positions = ((attention_mask.cumsum(dim=-1) - 1) * attention_mask)[:, None, :]
    return (rate[..., None] * positions).reshape(batch * num_heads, 1, seq).to(dtype)


def mpt(sequence_length, num_heads=8):
    """MPT's: one row, 0 at the last key."""
    row = torch.arange(1 - sequence_length, 1).view(1, 1, sequence_length)
    return row * torch.tensor(slopes(num_heads)).view(num_heads, 1, 1)


class Causal(nn.Module):
    """ALiBi with the mask in it."""

    def __init__(self, n_heads=8):
        super().__init__()
        self.n_heads = n_heads

    def forward(self, length):
        q, k = torch.arange(length)[:, None], torch.arange(length)
        made = -torch.tensor(slopes(self.n_heads))[:, None, None] * (q - k)
        return made.masked_fill(k > q, float("-inf"))


class T5(nn.Module):
    """T5's bias, with the number of tokens before the queries."""

    def __init__(self, num_heads=8, num_buckets=32, max_distance=128, bidirectional=True):
        super().__init__()
        self.bidirectional, self.num_buckets = bidirectional, num_buckets
        self.max_distance = max_distance
        self.relative_attention_bias = nn.Embedding(num_buckets, num_heads)

    def bucket(self, relative_position):
        relative_buckets, num_buckets = 0, self.num_buckets
        if self.bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        large = max_exact + (
            torch.log(relative_position.float() / max_exact)
            / math.log(self.max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        large = torch.min(large, torch.full_like(large, num_buckets - 1))
        return relative_buckets + torch.where(is_small, relative_position, large)

    def forward(self, query_length, key_length, past_seen_tokens=0):
        context = torch.arange(query_length)[:, None] + past_seen_tokens
        memory = torch.arange(key_length)[None, :]
        values = self.relative_attention_bias(self.bucket(memory - context))
        return values.permute([2, 0, 1]).unsqueeze(0)


class T5Decoder(T5):
    """The same for the past alone, as a method of attention."""

    def __init__(self, num_heads=8):
        super().__init__(num_heads, bidirectional=False)


# transformers' name of it, which is not ours to give
setattr(T5Decoder, "compute_bias", T5.forward)  # noqa: B010


class Clipped(nn.Module):
    """A learned number for each distance up to 8."""

    def __init__(self, heads=4, most=8):
        super().__init__()
        self.most, self.heads = most, heads
        self.weight = nn.Parameter(torch.randn(2 * most + 1, heads))

    def forward(self, q_len, k_len):
        distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
        index = distance.clamp(-self.most, self.most) + self.most
        return self.weight[index].permute(2, 0, 1)


class Kerple(nn.Module):
    """A learned logarithm of distance."""

    def __init__(self, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.p = nn.Parameter(torch.rand(num_heads, 1, 1) + 0.5)
        self.a = nn.Parameter(torch.rand(num_heads, 1, 1) + 0.5)

    def forward(self, scores):
        q_len, k_len = scores.shape[-2:]
        distance = (torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)).abs()
        p, a = self.p.clamp(min=0.01), self.a.clamp(min=0.01)
        return scores - p * torch.log(1 + a * distance)


class Ours(nn.Module):
    """This package's, behind a plain module."""

    def __init__(self, heads=6):
        super().__init__()
        from posenc import ALiBi

        self.heads, self.inner = heads, ALiBi(heads)

    def forward(self, q_len, k_len):
        return self.inner.table(torch.arange(k_len - q_len, k_len), torch.arange(k_len))


def between(q_positions, k_positions):
    """ALiBi of any positions; keys after a query are hidden."""
    distance = q_positions[:, None] - k_positions
    bias = -distance * 2.0 ** -torch.arange(1, 9)[:, None, None]
    return bias.masked_fill(distance < 0, -torch.inf)


class Short(nn.Module):
    """ALiBi cut from a table of few rows, for the last queries of a row."""

    def __init__(self, length=20):
        super().__init__()
        line = torch.arange(length)
        rates = torch.tensor(slopes(8))[:, None, None]
        self.register_buffer("bias", -rates * (line[:, None] - line).abs(), persistent=False)

    def forward(self, q_len, k_len):
        return self.bias[:, k_len - q_len : k_len, :k_len]


class ShortLearned(nn.Module):
    """A learned number for each distance of a short row, either way; longer ones are refused."""

    def __init__(self, length=40, heads=8):
        super().__init__()
        self.length = length
        self.table = nn.Parameter(torch.randn(heads, 2 * length - 1))

    def forward(self, q_len, k_len):
        queries = torch.arange(k_len - q_len, k_len)[:, None]
        return self.table[:, queries - torch.arange(k_len) + self.length - 1]


class OfThePast(nn.Module):
    """A learned number for each distance to the past; the future is left to the mask."""

    def __init__(self, rows=40, heads=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, heads))

    def forward(self, q_len, k_len):
        distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
        return self.weight[distance.clamp(min=0)].permute(2, 0, 1)


class LongPast(OfThePast):
    """More rows than are looked up."""

    def __init__(self):
        super().__init__(rows=800)


class InFloat32(AddedALiBi):
    """Half precision is refused."""

    def forward(self, scores):
        if scores.dtype != torch.float32:
            raise TypeError("scores must be float32")
        return super().forward(scores)


def of_square(side):
    """Rows and columns of the tokens of a square image."""
    index = torch.arange(side * side)
    return torch.stack((index // side, index % side), -1)


class Swin(nn.Module):
    """Swin: a learned number for each difference of rows and of columns in a window."""

    def __init__(self, side=7, num_heads=4):
        super().__init__()
        points, reach = of_square(side), 2 * side - 1
        relative = points[:, None] - points + side - 1
        self.register_buffer("relative_position_index", relative[..., 0] * reach + relative[..., 1])
        self.table = nn.Parameter(torch.randn(reach * reach, num_heads))

    def forward(self, q_len, k_len):
        return self.table[self.relative_position_index[:q_len, :k_len]].permute(2, 0, 1)


class LargeSwin(Swin):
    """Windows of 256 tokens."""

    def __init__(self):
        super().__init__(side=16)


class WholeWindow(nn.Module):
    """The same for whole windows alone."""

    def __init__(self, window_size=(5, 5), num_heads=4):
        super().__init__()
        self.window_size, self.inner = window_size, Swin(window_size[0], num_heads)

    def forward(self, q_len, k_len):
        assert q_len == k_len == self.window_size[0] * self.window_size[1]
        return self.inner(q_len, k_len)


class WindowAttention(WholeWindow):
    """The same within attention, beside its projections."""

    def __init__(self, window_size=(7, 7), num_heads=3, dim=96):
        super().__init__(window_size, num_heads)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def bias(self):
        index = self.inner.relative_position_index
        return self.inner.table[index].permute(2, 0, 1)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, len(self.bias()), -1)).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5 + self.bias()
        return self.proj(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))


class Continuous(nn.Module):
    """Swin v2: a network of logarithmic differences of rows and of columns, asked for no size."""

    def __init__(self, window_size=(8, 8), num_heads=4):
        super().__init__()
        self.num_heads, side = num_heads, window_size[0]
        self.register_buffer("index", Swin(side).relative_position_index)
        steps = 8 * torch.arange(1 - side, side) / (side - 1)
        line = steps.sign() * (steps.abs() + 1).log2() / 3
        self.register_buffer("coordinates", torch.cartesian_prod(line, line))
        self.network = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, num_heads, bias=False)
        )

    def forward(self):
        made = self.network(self.coordinates)[self.index]
        return 16 * made.permute(2, 0, 1).sigmoid()


class OfSides(nn.Module):
    """The same for any window, whose sides it takes."""

    def __init__(self, num_heads=4):
        super().__init__()
        self.network = Continuous((8, 8), num_heads).network

    def forward(self, window_size):
        made = Continuous(window_size, self.network[-1].out_features)
        made.network = self.network
        return made()


class FlatWindow(nn.Module):
    """A learned number for each difference of rows and of columns in a window of 4 × 16 tokens."""

    def __init__(self, window_size=(4, 16), num_heads=4):
        super().__init__()
        self.window_size, (high, wide) = window_size, window_size
        token = torch.arange(high * wide)
        rows, columns = token // wide, token % wide
        down, along = (axis[:, None] - axis for axis in (rows, columns))
        self.index = (down + high - 1) * (2 * wide - 1) + along + wide - 1
        self.table = nn.Parameter(torch.randn((2 * high - 1) * (2 * wide - 1), num_heads))

    def forward(self, q_len, k_len):
        assert q_len == k_len == len(self.index)
        return self.table[self.index].permute(2, 0, 1)


class SlicedWindow(FlatWindow):
    """The same in a window of 4 × 8 tokens, cut to the first of them where fewer are asked."""

    def __init__(self):
        super().__init__((4, 8))

    def forward(self, q_len, k_len):
        return self.table[self.index].permute(2, 0, 1)[:, :q_len, :k_len]


class Beit(Swin):
    """BEiT: a class token before the patches has three numbers of its own."""

    def __init__(self, side=6, num_heads=4):
        super().__init__(side, num_heads)
        rows = len(self.table)
        self.table = nn.Parameter(torch.randn(rows + 3, num_heads))
        index = nn.functional.pad(self.relative_position_index, (1, 0, 1, 0), value=rows)
        index[1:, 0], index[0, 0] = rows + 1, rows + 2
        self.relative_position_index = index


class Euclidean(nn.Module):
    """ALiBi by the distance in the plane, of many patches: the first of them stand in one row."""

    def __init__(self, side=25):
        super().__init__()
        points = of_square(side).float()
        rates = torch.tensor(slopes(4))[:, None, None]
        self.register_buffer("bias", -rates * torch.cdist(points, points))

    def forward(self, q_len, k_len):
        return self.bias[:, :q_len, :k_len]


class EuclideanBehindClass(Euclidean):
    """The same; a class token is as near to all."""

    def __init__(self, side=8):
        super().__init__(side)
        self.bias = nn.functional.pad(self.bias, (1, 0, 1, 0))


class ScoresNamedX(nn.Module):
    """GPT-NeoX: scores come by the name of anything else."""

    def __init__(self, num_heads=4):
        super().__init__()
        slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)
        self.register_buffer("slopes", slopes[:, None, None], persistent=False)
        self.num_heads = num_heads

    def forward(self, x):
        q_len, k_len = x.shape[-2:]
        far = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
        return x - self.slopes.to(x.dtype) * far.abs()


def apart(q_len, k_len):
    """How far each of the last queries stands behind each key."""
    return torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)


def hiding(q_len, k_len, away):
    """ALiBi of 8 heads with keys hidden."""
    return alibi(q_len, k_len).masked_fill(away, float("-inf"))


def sliding(q_len, k_len):
    """Mistral's window: each query sees itself and the 6 tokens before."""
    far = apart(q_len, k_len)
    return hiding(q_len, k_len, (far < 0) | (far > 6))


def local(q_len, k_len):
    """Longformer's window, to both sides."""
    return hiding(q_len, k_len, apart(q_len, k_len).abs() > 100)


def streaming(q_len, k_len):
    """A window of speech: 40 tokens back and 4 ahead."""
    far = apart(q_len, k_len)
    return hiding(q_len, k_len, (far > 40) | (far < -4))


def chunks(q_len, k_len):
    """Chunks of 8 tokens see themselves."""
    queries, keys = torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)
    return hiding(q_len, k_len, queries // 8 != keys // 8)


def windows_by_head(q_len, k_len):
    """Half of the heads look 5 tokens back, the others as far as they will."""
    far = apart(q_len, k_len)
    near = torch.arange(8)[:, None, None] < 4
    return hiding(q_len, k_len, (far < 0) | near & (far > 5))


class CausalT5(T5Decoder):
    """T5's for the past, with the mask in it."""

    def forward(self, query_length, key_length):
        made = super().forward(query_length, key_length, key_length - query_length)
        return made.masked_fill(apart(query_length, key_length) < 0, -10000.0)


setattr(CausalT5, "compute_bias", CausalT5.forward)  # noqa: B010


def lengths_by_any_name(q, k):
    """ALiBi by two numbers that are called as tensors are."""
    return alibi(q, k)


RIGHT = [
    right(lengths_by_any_name, "ALiBi for 8 heads"),
    right(Short, "ALiBi for 8 heads"),
    right(ShortLearned, "one number for each distance up to 39"),
    right(OfThePast, "one number for each distance to the past up to 39"),
    right(LongPast, "one number for each distance to the past up to 799"),
    right(InFloat32, "ALiBi for 12 heads"),
    right(Swin, "a learned bias of 7 × 7 tokens, row after row: it depends on the differences"),
    right(LargeSwin, "a learned bias of 16 × 16 tokens"),
    right(FlatWindow, "a learned bias"),
    right(SlicedWindow, "a learned bias"),
    right(WholeWindow, "a learned bias of 5 × 5 tokens"),
    right(WindowAttention, "a learned bias of 7 × 7 tokens", kind="bias", call="subject.bias()"),
    right(Continuous, "a learned bias of 8 × 8 tokens, row after row"),
    right(OfSides, "a learned bias of 6 × 6 tokens", kind="bias", call="subject((6, 6))"),
    right(Beit, "a learned bias of 6 × 6 tokens, row after row behind a class token"),
    right(Euclidean, "a bias of 25 × 25 tokens"),
    right(EuclideanBehindClass, "a bias of 8 × 8 tokens, row after row behind a class token"),
    right(between, "ALiBi for 8 heads"),
    right(slopes, "ALiBi for 8 heads"),
    right(alibi, "ALiBi for 8 heads"),
    right(ScoresNamedX, "ALiBi for 4 heads"),
    right(AddedALiBi, "ALiBi for 12 heads", "bias-in-16-bits"),
    right(bloom, "ALiBi for 8 heads", "bias-in-16-bits"),
    right(mpt, "ALiBi for 8 heads"),
    right(Causal, "ALiBi for 8 heads"),
    right(T5, "T5's bias, 32 buckets for both directions, maximal distance 128"),
    right(T5Decoder, "T5's bias, 32 buckets for the past, maximal distance 128"),
    right(Clipped, "one number for each distance up to 8"),
    right(Kerple, "a learned bias"),
    right(Ours, "ALiBi for 6 heads"),
    right(sliding, ""),
    right(local, "ALiBi for 8 heads"),
    right(streaming, ""),
    right(chunks, ""),
    right(windows_by_head, ""),
    right(CausalT5, "T5's bias, 32 buckets for the past, maximal distance 128"),
]
