"""FoPE, LongRoPE's first tokens, NeRF's octaves and mTAN's times against their authors' code."""

import torch
from tests.encodings.authors.values import SINGLE, numbers

from posenc import Rotary, StartTokenRotary
from posenc.frequencies import Geometric, LongRoPE


def test_first_tokens_of_longrope():
    """microsoft/LongRoPE@c9e56aa, rope/longrope.py: MixedLongRoPEScaledRotaryEmbedding.

    Its _longrope_forward, and _add_original_embeddings of what that gives (its forward hands both
    tables over as one), of width 8 and base 100, from 16 to 64 positions, 3 of them as they were:
    cosines and sines of positions 2, 3 and 5.
    """
    factors = (1.0, 1.5, 2.0, 4.0)
    extended = LongRoPE(Geometric(8, 100), (1.0,) * 4, factors, 16, 4.0).at(17)
    encoding = StartTokenRotary(Rotary(extended), Rotary(8, base=100), count=3)
    made = encoding.table([2, 3, 5], dtype=torch.float64).movedim(-2, 0)
    theirs = """-0.4161468446 0.8065783978 0.9800665975 0.9980006814 -1.212488294 0.9878528714
        1.210992336 1.22440052 0.3474138379 0.6050447226 1.186670542 1.223788142
        0.9092974067 0.5911270976 0.1986693293 0.06320339441 0.1728360057 0.7239798307 0.1830236018
        0.02904465236 -1.174437642 1.064857244 0.3030067384 0.04839969054"""
    torch.testing.assert_close(made.ravel(), numbers(theirs), **SINGLE)
