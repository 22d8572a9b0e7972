"""What encodings of queries and keys refuse: what people meet, and tables that would broadcast."""

import pytest
import torch

from posenc import (
    GRAPE,
    AxialRotary,
    FoPE,
    LTXRotary,
    MHRoPE,
    MultimodalRotary,
    PoPE,
    QueryTemperature,
    Rotary,
    XPos,
    move_keys,
    rerotate,
)
from posenc.frequencies import DynamicNTK, Geometric
from posenc.positions import NOWHERE, consecutive, grid

X, POINTS = torch.ones(1, 2, 6, 8), grid(2, 3)
FLOAT32 = Rotary(8, arithmetic="float32")
REFUSED = [
    (lambda: Rotary(7), "multiple of 2"),
    (lambda: Rotary(16, head_dim=8), "head_dim is 8"),
    (lambda: Rotary(16, pairing="adjacent"), "pairing"),
    (lambda: Rotary([1.0, 0.5], base=100), "base"),
    (lambda: Rotary(DynamicNTK(Geometric(8), 2.0, 64)), "at"),
    (lambda: MultimodalRotary(Rotary(128), (16, 24)), "40 pairs"),
    (lambda: MHRoPE(Rotary(8), heads=4), "heads is 4"),
    (lambda: AxialRotary(6), "multiple of 4"),
    (lambda: AxialRotary(8, form="ltx"), "LTXRotary"),
    (lambda: AxialRotary(64, form="flux"), "64 channels"),
    (lambda: LTXRotary(7, 3), "even"),
    (lambda: XPos(Rotary(8, arithmetic="vllm")), "arithmetic"),
    (lambda: Rotary(16)(X, X), "head_dim is 16"),
    (lambda: Rotary(8)(X, X[..., :6]), "head_dim is 8"),
    (lambda: Rotary(8).encode_keys(X, Rotary(6).table(range(6))), "8 channels rotate"),
    (lambda: Rotary(8).encode_keys(X, Rotary(8).table([3])), "6 tokens"),
    (lambda: Rotary(8)(X, X, consecutive(6).expand(2, -1)), "batch|broadcast"),
    (lambda: Rotary(8).encode_queries(X, Rotary(8).table(range(6)), out=X.bfloat16()), "out"),
    (lambda: MultimodalRotary(Rotary(8), (2, 1, 1)).table(range(4)), "seq, 3"),
    (lambda: AxialRotary(8)(X, X, POINTS[:1]), "6 tokens"),
    (lambda: GRAPE(8, 1)(X, X), "heads=1"),
    (lambda: FoPE(8, 1, 100)(X, X), "heads=1"),
    (lambda: PoPE(8, 1)(X, X), "heads=1"),
    (lambda: QueryTemperature(8).encode_queries(X, torch.ones(1, 1)), "6, 1"),
    (lambda: move_keys(X, [0], range(6), Rotary(8)), "to_positions"),
    (lambda: move_keys(X[:, :, :1], [[NOWHERE] * 2], [[0, 0]], AxialRotary(8)), "nowhere"),
    (lambda: rerotate(X, range(6), Rotary(8), Rotary(8, pairing="interleaved")), "pairing"),
    (lambda: rerotate(X, range(6), Rotary(8), FLOAT32), "float32"),
]


@pytest.mark.parametrize(("build", "noun"), REFUSED)
def test_it_is_refused(build, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        build()
