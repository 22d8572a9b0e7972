"""What encodings refuse: what people meet, and what would be silently wrong."""

import pytest
import torch

from posenc import (
    FIRE,
    PEG,
    SHAPE,
    ALiBi,
    AxialRotary,
    AxialSinusoidal,
    Convolutional,
    CoPE,
    Cyclic,
    Graph,
    Learned,
    LearnedGrid,
    MHRoPE,
    MultimodalRotary,
    PoPE,
    Positional,
    QueryTemperature,
    Randomized,
    RelativeBias,
    Rotary,
    Sinusoidal,
    SwinBias,
    T5Bias,
    move_keys,
    rerotate,
)
from posenc.frequencies import DynamicNTK, Geometric
from posenc.positions import NOWHERE, consecutive, grid, packed_grids, prefixed

X, SCORES = torch.ones(1, 2, 6, 8), torch.zeros(1, 4, 3, 3)
TOKENS = torch.zeros(2, 5, 16)
HALVES = Rotary(8)
REFUSED = [
    (lambda: Sinusoidal(15, convention="concatenated"), "odd"),
    (lambda: Sinusoidal(4, convention="fairseq"), "convention"),
    (lambda: Sinusoidal(4, dropout=1.5), "probability"),
    (lambda: Sinusoidal(16)(TOKENS.long()), "int64"),
    (lambda: Sinusoidal(16).encode(TOKENS, Sinusoidal(16).table([3])), "Each token"),
    (lambda: Sinusoidal(16, batch_first=False)(TOKENS, range(5)), "Each token"),
    (lambda: Learned(8, 512).table(torch.zeros(3)), "integers"),
    (lambda: Learned(8, 512, offset=2).table([3, 512]), "512 rows"),
    (lambda: Learned(8, 512, offset=2).table([[0, -1]]), "512 rows"),
    (lambda: AxialSinusoidal(10), "2 axes"),
    (lambda: LearnedGrid(4, (2, 3)).table([0, 1]), "shape"),
    (lambda: LearnedGrid(4, (2, 3)).table([[0, 3]]), "hold"),
    (lambda: LearnedGrid(4, (2, 3)).table(prefixed(grid(2, 3))), "prefix"),
    (lambda: LearnedGrid.from_weight(torch.zeros(200, 8)), "200 rows"),
    (lambda: Convolutional(16, 3)(TOKENS[:, :4], [0, 1, 1, 2]), "repeat"),
    (lambda: PEG(4)(torch.zeros(4, 4), packed_grids([(1, 2), (2, 1)])[0]), "Two tokens"),
    (lambda: Rotary(7), "multiple of 2"),
    (lambda: Rotary([1.0, 0.5], base=100), "base"),
    (lambda: Rotary(DynamicNTK(Geometric(8), 2.0, 64)), "at"),
    (lambda: MultimodalRotary(Rotary(128), (16, 24)), "40 pairs"),
    (lambda: MHRoPE(HALVES, heads=4), "heads is 4"),
    (lambda: AxialRotary(6), "multiple of 4"),
    (lambda: Rotary(16)(X, X), "head_dim is 16"),
    (lambda: HALVES.encode_keys(X, Rotary(6).table(range(6))), "8 channels rotate"),
    (lambda: HALVES.encode_keys(X, HALVES.table([3])), "6 tokens"),
    (lambda: HALVES(X[:, :, :1], X, [0]), "6 tokens"),
    (lambda: HALVES(X, X, consecutive(6).expand(2, -1)), "batch|broadcast"),
    (lambda: HALVES.encode_queries(X, HALVES.table(range(6)), out=X.bfloat16()), "out"),
    (lambda: MultimodalRotary(HALVES, (2, 1, 1)).table(range(4)), "seq, 3"),
    (lambda: PoPE(8, 1)(X, X), "heads=1"),
    (lambda: QueryTemperature(8).encode_queries(X, torch.ones(1, 1)), "6, 1"),
    (lambda: move_keys(X[:, :, :1], [[NOWHERE] * 2], [[0, 0]], AxialRotary(8)), "nowhere"),
    (lambda: rerotate(X, range(6), HALVES, Rotary(8, pairing="interleaved")), "pairing"),
    (lambda: ALiBi(4, slopes=(0.5, 0.25)), "slopes"),
    (lambda: ALiBi(4).encode(SCORES, torch.zeros(4, 1, 3)), "must be the same"),
    (lambda: ALiBi(8)(SCORES), "must be"),
    (lambda: ALiBi(8)[3:1], "8 heads"),
    (lambda: ALiBi(4) + ALiBi(8), "4 and 8 heads"),
    (lambda: RelativeBias.of(lambda distance: distance.expand(5, 6), 4).profile(range(6)), "gave"),
    (lambda: T5Bias(2, buckets=7), "buckets"),
    (lambda: Cyclic(4, FIRE(4), 12), "FIRE"),
    (lambda: CoPE(4, 8, 3)(SCORES), "given no q"),
    (lambda: SwinBias(1, 3).table(grid(4, 3), grid(4, 3)), "further apart"),
    (lambda: SwinBias(1, 3).table(range(4), range(4)), "points"),
    (lambda: Positional(tokens=ALiBi(4)), "belongs to scores"),
    (lambda: Positional(positions=SHAPE(3)).remapped(grid(2, 3)[None]), "takes"),
    (lambda: Randomized(4)(range(5)), "5 tokens"),
    (lambda: Graph(torch.tensor([[0], [5]]), 3), "3 nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "noun"), REFUSED)
def test_it_is_refused(build, noun):
    with pytest.raises((TypeError, ValueError, IndexError), match=noun):
        build()
