"""What public code adds to scores, or hides them with, in its usual styles."""

import math

import torch
from tests.audit.zoo.arithmetic import apart, of_square
from tests.audit.zoo.specimen import right
from torch import nn


def slopes(n_heads):
    """The slopes of ALiBi's authors."""
    closest = 2 ** math.floor(math.log2(n_heads))
    start = 2 ** (-(2 ** -(math.log2(closest) - 3)))
    rest = slopes(2 * closest)[0::2][: n_heads - closest] if n_heads > closest else []
    return [start * start**i for i in range(closest)] + rest


def alibi(q_len, k_len):
    """ALiBi of 8 heads for the last queries of a row."""
    return -torch.tensor(slopes(8))[:, None, None] * apart(q_len, k_len).abs()


def lengths_by_any_name(q, k):
    """ALiBi by two numbers that are called as tensors are."""
    return alibi(q, k)


def between(q_positions, k_positions):
    """ALiBi of any positions; keys after a query are hidden."""
    distance = q_positions[:, None] - k_positions
    bias = -distance * 2.0 ** -torch.arange(1, 9)[:, None, None]
    return bias.masked_fill(distance < 0, -torch.inf)


def others_alone(q_len, k_len):
    """Every key but a query's own."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) == 0, -torch.inf)


def bloom(attention_mask, num_heads, dtype):
    """Bloom's: slope times the position of the key."""
    batch, seq = attention_mask.shape
    rate = torch.tensor(slopes(num_heads))
    positions = ((attention_mask.cumsum(dim=-1) - 1) * attention_mask)[:, None, :]
    return (rate[..., None] * positions).reshape(batch * num_heads, 1, seq).to(dtype)


class Short(nn.Module):
    """ALiBi cut from a table of few rows, for the last queries of a row."""

    def __init__(self, length=20):
        super().__init__()
        self.register_buffer("bias", alibi(length, length), persistent=False)

    def forward(self, q_len, k_len):
        return self.bias[:, k_len - q_len : k_len, :k_len]


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
            relative_position = -relative_position.clamp(max=0)
        max_exact = num_buckets // 2
        share = torch.log(relative_position.float() / max_exact) / math.log(
            self.max_distance / max_exact
        )
        large = max_exact + (share * (num_buckets - max_exact)).to(torch.long)
        return relative_buckets + torch.where(
            relative_position < max_exact, relative_position, large.clamp(max=num_buckets - 1)
        )

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


class Kerple(nn.Module):
    """A learned logarithm of distance."""

    def __init__(self, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.p, self.a = (nn.Parameter(torch.rand(num_heads, 1, 1) + 0.5) for _ in range(2))

    def forward(self, scores):
        p, a = self.p.clamp(min=0.01), self.a.clamp(min=0.01)
        return scores - p * torch.log(1 + a * apart(*scores.shape[-2:]).abs())


class OfThePast(nn.Module):
    """A learned number for each distance to the past; the future is left to the mask."""

    def __init__(self, rows=40, heads=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, heads))

    def forward(self, q_len, k_len):
        return self.weight[apart(q_len, k_len).clamp(min=0)].permute(2, 0, 1)


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


class WholeWindow(nn.Module):
    """The same for whole windows alone."""

    def __init__(self, window_size=(5, 5), num_heads=4):
        super().__init__()
        self.window_size, self.inner = window_size, Swin(window_size[0], num_heads)

    def forward(self, q_len, k_len):
        assert q_len == k_len == self.window_size[0] * self.window_size[1]
        return self.inner(q_len, k_len)


class ShiftedWindow(WholeWindow):
    """Swin's shifted window, whose last rows and columns come from another side of the image."""

    hides = -100.0

    def forward(self, q_len, k_len):
        points = of_square(5)
        region = (points >= 3)[:, 0] * 2 + (points >= 3)[:, 1]
        other = region[:, None] != region
        return super().forward(q_len, k_len).masked_fill(other, self.hides)


class ShiftedWindowAtInfinity(ShiftedWindow):
    hides = float("-inf")


class Euclidean(nn.Module):
    """ALiBi by the distance in the plane, of many patches: the first of them stand in one row."""

    def __init__(self, side=25):
        super().__init__()
        points, rates = of_square(side).float(), torch.tensor(slopes(4))[:, None, None]
        self.register_buffer("bias", -rates * torch.cdist(points, points))

    def forward(self, q_len, k_len):
        return self.bias[:, :q_len, :k_len]


RIGHT = [
    right(lengths_by_any_name, "ALiBi for 8 heads"),
    right(Short, "ALiBi for 8 heads"),
    right(OfThePast, "one number for each distance to the past up to 39"),
    right(Swin, "a learned bias of 7 × 7 tokens, row after row: it depends on the differences"),
    right(WholeWindow, "a learned bias of 5 × 5 tokens"),
    right(ShiftedWindow, "a learned bias of 5 × 5 tokens"),
    right(ShiftedWindowAtInfinity, "a learned bias"),
    right(Euclidean, "a bias of 25 × 25 tokens"),
    right(others_alone, ""),
    right(between, "ALiBi for 8 heads"),
    right(slopes, "ALiBi for 8 heads"),
    right(alibi, "ALiBi for 8 heads"),
    right(bloom, "ALiBi for 8 heads", "bias-in-16-bits"),
    right(T5, "T5's bias, 32 buckets for both directions, maximal distance 128"),
    right(T5Decoder, "T5's bias, 32 buckets for the past, maximal distance 128"),
    right(Kerple, "a learned bias"),
]
