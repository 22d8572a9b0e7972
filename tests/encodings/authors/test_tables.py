"""FoPE, LongRoPE's first tokens, NeRF's octaves and mTAN's times against their authors' code."""

import torch
from tests.encodings.authors.values import CLOSE, SINGLE, eighths, fill, numbers

from posenc import FoPE, Rotary, StartTokenRotary
from posenc.frequencies import Geometric, LongRoPE


def test_fope():
    """TsinghuaC3I/Fourier-Position-Embedding@bd94b20, olmo/model.py.

    apply_rotary_pos_emb of FourierEmbedding with fourier_ignore_zero, a basis each for sines and
    cosines, and 2 heads of width 8, of which 2 frequencies are kept: at 0, 1 and 5.
    """
    fope = FoPE(8, heads=2, trained_length=100, slow="code").double()
    fill(fope.cos_coef, fope.sin_coef, start=1)
    made = fope.encode_keys(
        eighths(1, 2, 3, 8, start=3), fope.table([0, 1, 5], dtype=torch.float64)
    )
    theirs = """0 -0.65625 -0.375 -0.375 0 0.875 -1.125 0.125 0.151947541 0.6105516306 -0.375 -0.375
        -0.3453826177 0.05163534179 0.375 1.625 -0.09570554172 0.2036690934 1.75 -0.375
        -0.405978333 -0.4588560424 -0.25 -1.125 0.1875 -0.109375 -0.375 -0.375 0.46875 0.109375
        -0.875 0.375 0.8826601968 0.2247723667 -0.375 1.75 -0.614637631 -0.272450941 0.625 -0.25
        -0.3025001308 0.4038463836 1.75 -0.375 0.1797880081 -0.4025415755 0 -0.875"""
    torch.testing.assert_close(made.detach().ravel(), numbers(theirs), **CLOSE)


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
