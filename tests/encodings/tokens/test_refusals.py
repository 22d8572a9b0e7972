"""What encodings of tokens refuse, of what people meet."""

import re

import pytest
import torch

from posenc import (
    PEG,
    AxialLearned,
    AxialSinusoidal,
    Convolutional,
    Learned,
    LearnedGrid,
    Sinusoidal,
)
from posenc.positions import consecutive, grid, packed_grids, prefixed

X = torch.zeros(2, 5, 16)
REFUSED = [
    (lambda: Sinusoidal(15, convention="concatenated"), "'concatenated' convention has no odd"),
    (lambda: Sinusoidal(2, convention="tensor2tensor"), "i / (dim // 2 − 1) need 4 or more."),
    (lambda: Sinusoidal(4, convention="fairseq"), "convention is 'fairseq'; it must be"),
    (lambda: Sinusoidal(4, dropout=1.5), "dropout is 1.5; it must be a probability between"),
    (lambda: Sinusoidal(16)(X.long()), "x is torch.int64"),
    (lambda: Sinusoidal(16).encode(X, Sinusoidal(16).table([3])), "Each token takes one"),
    (lambda: Sinusoidal(16)(X[:1], consecutive(5).expand(3, 5)), "Each token takes one"),
    (lambda: Sinusoidal(16, batch_first=False)(X, range(5)), "Each token takes one"),
    (lambda: Learned(8, 512).table(torch.zeros(3)), "they must be integers"),
    (lambda: Learned(8, 512, offset=2).table([3, 512]), "the table has 512 rows"),
    (lambda: Learned(8, 512, offset=2).table([[0, -1]]), "the table has 512 rows"),
    (lambda: AxialSinusoidal(10), "dim is 10; form 'mae' shares it among 2 axes"),
    (lambda: AxialSinusoidal(8, "detr", stretch=2), "form 'detr' is normalized and takes"),
    (lambda: AxialSinusoidal(8, "detr").table(grid(2, 2)), "must be [*batch, seq, 4]"),
    (lambda: AxialLearned(1, (2, 2), "forward"), "dim is 1; 2 axes share it"),
    (lambda: LearnedGrid(4, (2, 3)).table([0, 1]), "positions have shape (2,)"),
    (lambda: LearnedGrid(4, (2, 3)).table([[0, 3]]), "positions hold [0, 3]"),
    (lambda: LearnedGrid(4, (2, 3)).table(prefixed(grid(2, 3))), "token 0 of the prefix"),
    (lambda: LearnedGrid.from_weight(torch.zeros(200, 8)), "weight has 200 rows, which no"),
    (lambda: LearnedGrid.from_state_dict({"weight": torch.zeros(50, 8)}), "has no grid"),
    (lambda: Convolutional(10), "dim is 10; it must be a whole number from 16 on."),
    (lambda: Convolutional(16).load({}), "0 names end in 'conv.bias'"),
    (lambda: Convolutional(16, 3)(X[:, :4], [0, 1, 1, 2]), "Positions repeat"),
    (lambda: PEG(4)(torch.zeros(4, 4), packed_grids([(1, 2), (2, 1)])[0]), "Two tokens stand"),
]


@pytest.mark.parametrize(("build", "words"), REFUSED)
def test_it_is_refused(build, words):
    with pytest.raises((TypeError, ValueError, IndexError, KeyError), match=re.escape(words)):
        build()
