"""What is right of rows without a padding mask, or where nothing is hidden."""

import torch
from tests.audit.zoo.right.bias import T5Decoder, alibi, apart
from tests.audit.zoo.specimen import wrong
from tests.audit.zoo.wrong.added import sines
from torch import nn


class Masked(nn.Module):
    """The paper's sum, counted by the tokens that are none of padding."""

    batch_first = True

    def counted(self, mask):
        return (mask.cumsum(1) - 1).clamp(min=0)

    def beside(self, x, mask):
        return 0.0

    def forward(self, x, attention_mask=None):
        table = sines(x.shape[1] + 8, x.shape[2]).to(x.dtype)
        if attention_mask is None:
            return x + table[: x.shape[1]]
        return x + table[self.counted(attention_mask)] + self.beside(x, attention_mask)


class FromTheEnd(Masked):
    """Padding after a row is counted as if it stood before it."""

    def counted(self, mask):
        return (torch.arange(mask.shape[1]) - (mask == 0).sum(1, keepdim=True)).clamp(min=0)


class OneMore(Masked):
    """Rows with a mask begin at 1, and rows without at 0."""

    def counted(self, mask):
        return mask.cumsum(1)


class OfContent(Masked):
    """What stands on padding reaches the tokens beside it."""

    def beside(self, x, mask):
        padding = (mask == 0)[..., None]
        return (x * padding).sum(1, keepdim=True)


def one_leaks(q_len, k_len):
    """The mask begins one token late."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) < -1, float("-inf"))


def masks_the_past(q_len, k_len):
    """The other triangle is hidden."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) > 0, -1e9)


def masks_the_diagonal(q_len, k_len):
    """The mask begins one token early."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) <= 0, float("-inf"))


def masks_from_the_first(q_len, k_len):
    """The mask takes queries behind a cache for the first ones."""
    later = torch.ones(q_len, k_len, dtype=torch.bool).triu(1)
    return alibi(q_len, k_len).masked_fill(later, float("-inf"))


def masks_many_alone(q_len, k_len):
    """Several queries behind a cache see each other's future."""
    hides = (apart(q_len, k_len) < 0) & (q_len == k_len)
    return alibi(q_len, k_len).masked_fill(hides, float("-inf"))


class LeakingT5(T5Decoder):
    """T5's bias with two tokens of the future."""

    def forward(self, query_length, key_length):
        made = super().forward(query_length, key_length, key_length - query_length)
        return made.masked_fill(apart(query_length, key_length) < -2, float("-inf"))


setattr(LeakingT5, "compute_bias", LeakingT5.forward)  # noqa: B010


WRONG = [
    wrong(FromTheEnd, "right padding counts", "padding-shifts-positions"),
    wrong(OneMore, "a mask begins at 1", "padding-shifts-positions"),
    wrong(OfContent, "content of padding reaches tokens", "padding-shifts-positions"),
    wrong(one_leaks, "a key of the future leaks", "mask-misplaced"),
    wrong(masks_the_past, "the past is hidden", "mask-misplaced"),
    wrong(masks_the_diagonal, "its own key is hidden", "mask-misplaced"),
    wrong(masks_from_the_first, "a mask without cache", "bias-without-cache-offset"),
    wrong(masks_many_alone, "no mask behind a cache", "bias-without-cache-offset"),
    wrong(LeakingT5, "two keys of the future leak", "mask-misplaced"),
]
