"""What public code adds to scores and hides with one tensor, in its usual styles."""

import torch
from tests.audit.zoo.right.bias import WholeWindow, alibi, apart, of_square
from tests.audit.zoo.specimen import right
from torch import nn


class Neighborhood(nn.Module):
    """NATTEN's: each pixel of 10 × 10 sees the 5 × 5 next to it, at the edge too."""

    def __init__(self, heads=4, length=100, kernel=5):
        super().__init__()
        points, reach = of_square(10), 2 * kernel - 1
        first = (points - kernel // 2).clamp(0, 10 - kernel)
        away = points - first[:, None]
        relative = (points - points[:, None] + kernel - 1).clamp(0, reach - 1)
        self.length = length
        self.register_buffer("seen", ((away >= 0) & (away < kernel)).all(-1))
        self.register_buffer("index", relative[..., 0] * reach + relative[..., 1])
        self.table = nn.Parameter(torch.randn(reach**2, heads))

    def forward(self, q_len, k_len):
        if q_len != self.length or k_len != self.length:
            raise ValueError("the whole image, please")
        return self.table[self.index].permute(2, 0, 1).masked_fill(~self.seen, float("-inf"))


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


class CausalWindow(WholeWindow):
    """Patches row after row, of which each sees those before it."""

    def forward(self, q_len, k_len):
        later = torch.ones(q_len, k_len, dtype=torch.bool).triu(1)
        return super().forward(q_len, k_len).masked_fill(later, float("-inf"))


class EachPair(nn.Module):
    """A learned number for each two of 49 tokens."""

    def __init__(self, heads=4, length=49):
        super().__init__()
        self.length = length
        self.table = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, q_len, k_len):
        if q_len != self.length or k_len != self.length:
            raise ValueError("the whole window, please")
        return self.table


class OwnBuckets(nn.Module):
    """One learned number for each doubling of distance, within 20 keys."""

    def __init__(self, num_heads=8):
        super().__init__()
        self.table = nn.Embedding(16, num_heads)

    def forward(self, q_len, k_len):
        far = apart(q_len, k_len)
        made = self.table((far.abs() + 1).float().log2().long().clamp(max=15))
        return made.permute(2, 0, 1).masked_fill((far < 0) | (far > 20), float("-inf"))


def hiding(q_len, k_len, away, low=float("-inf")):
    return alibi(q_len, k_len).masked_fill(away, low)


def others_alone(q_len, k_len):
    """Every key but a query's own."""
    return hiding(q_len, k_len, apart(q_len, k_len) == 0)


def before_alone(q_len, k_len):
    """Every key before a query; the first key for the first."""
    return hiding(q_len, k_len, (apart(q_len, k_len) <= 0) & (torch.arange(k_len) > 0))


def flat_window(q_len, k_len):
    """One head looks 16 tokens back, to all of them alike."""
    far = apart(q_len, k_len)
    made = hiding(q_len, k_len, far < 0)
    made[0] = torch.zeros(q_len, k_len).masked_fill((far < 0) | (far > 16), float("-inf"))
    return made


def both_ways(q_len, k_len):
    """Half of the heads look back, half ahead."""
    far, back = apart(q_len, k_len), torch.arange(8)[:, None, None] < 4
    return hiding(q_len, k_len, torch.where(back, far < 0, far > 0))


def one_head_alone(q_len, k_len):
    """One head sees each query's own key."""
    far, last = apart(q_len, k_len), torch.arange(8)[:, None, None] == 7
    return hiding(q_len, k_len, (far < 0) | last & (far > 0))


def own_key_last(q_len, k_len):
    """Reformer's: a query's own key where there is no other."""
    far = apart(q_len, k_len)
    return hiding(q_len, k_len, far == 0, -1e5).masked_fill(far < 0, -1e9)


RIGHT = [
    right(Neighborhood, "a learned bias"),
    right(ShiftedWindow, "a learned bias of 5 × 5 tokens"),
    right(ShiftedWindowAtInfinity, "a learned bias"),
    right(CausalWindow, "a learned bias of 5 × 5 tokens"),
    right(EachPair, "a learned bias"),
    right(OwnBuckets, "a learned bias"),
    right(others_alone, ""),
    right(before_alone, ""),
    right(flat_window, ""),
    right(both_ways, ""),
    right(one_head_alone, ""),
    right(own_key_last, ""),
]
