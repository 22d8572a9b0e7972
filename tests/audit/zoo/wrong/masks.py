"""What is right of rows without a padding mask, or where nothing is hidden."""

import torch
from tests.audit.zoo.right.bias import alibi, apart
from tests.audit.zoo.specimen import wrong


def one_leaks(q_len, k_len):
    """The mask begins one token late."""
    return alibi(q_len, k_len).masked_fill(apart(q_len, k_len) < -1, float("-inf"))


def masks_from_the_first(q_len, k_len):
    """The mask takes queries behind a cache for the first ones."""
    later = torch.ones(q_len, k_len, dtype=torch.bool).triu(1)
    return alibi(q_len, k_len).masked_fill(later, float("-inf"))


WRONG = [
    wrong(one_leaks, "a key of the future leaks", "mask-misplaced"),
    wrong(masks_from_the_first, "a mask without cache", "bias-without-cache-offset"),
]
