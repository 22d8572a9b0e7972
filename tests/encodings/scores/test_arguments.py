"""What constructors and calls of score encodings refuse, of what people meet."""

import pytest
import torch

from posenc import (
    CABLE,
    DAPE,
    FIRE,
    ALiBi,
    CoPE,
    Cyclic,
    DAPEv2,
    PaTH,
    RemappedRotary,
    SelectiveRoPE,
    SelfExtend,
    Shaw,
    SwinBias,
    T5Bias,
    TransformerXL,
    forgetting_bias,
)
from posenc.positions import consecutive, grid

SCORES = torch.zeros(1, 4, 3, 3)
REFUSED = {
    "slopes is 'steep'": lambda: ALiBi(4, slopes="steep"),
    "slopes are 2": lambda: ALiBi(4, slopes=(0.5, 0.25)),
    "buckets is 7": lambda: T5Bias(2, buckets=7),
    "bias is FIRE": lambda: Cyclic(4, FIRE(4), 12),
    "bias is Shaw": lambda: DAPE(4, Shaw(4, 8, reach=2)),
    "kernel is 2": lambda: DAPEv2(4, ALiBi(4), kernel=2),
    "multiple of 3": lambda: PaTH(4, 8, 16, kv_heads=3),
    "rotary is ALiBi": lambda: RemappedRotary(4, ALiBi(4), SelfExtend()),
    "rotary is 8": lambda: SelectiveRoPE(4, 8, 16),
    "given no q": lambda: CoPE(4, 8, 3)(SCORES),
    "given no k": lambda: TransformerXL(4, 8)(SCORES, q=torch.zeros(1, 4, 3, 8)),
    "given no k_features": lambda: CABLE(4, 8)(SCORES),
    "one side": lambda: forgetting_bias(torch.zeros(1, 3), q_positions=consecutive(3)),
    "further apart": lambda: SwinBias(1, 3).table(grid(4, 3), grid(4, 3)),
    "points": lambda: SwinBias(1, 3).table(consecutive(4), consecutive(4)),
    "queries and keys must be": lambda: ALiBi(8)(SCORES),
}


@pytest.mark.parametrize("words", REFUSED)
def test_it_is_refused(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()
