"""What constructors and calls of score encodings refuse, one case a rule."""

import pytest
import torch

from posenc import (
    CABLE,
    DAPE,
    FIRE,
    KERPLE,
    AdditiveGRAPE,
    ALiBi,
    CoPE,
    Cyclic,
    DAPEv2,
    DeBERTa,
    DecomposedRelative,
    PaTH,
    RemappedRotary,
    RePo,
    ReRoPE,
    Rotary,
    Sandwich,
    SelectiveRoPE,
    Shaw,
    SwinBias,
    SwinV2Bias,
    T5Bias,
    Temperature,
    TransformerXL,
    forgetting_bias,
)
from posenc.positions import consecutive, grid

SCORES = torch.zeros(1, 4, 3, 3)
FLOAT32 = Rotary(8, arithmetic="float32")
REFUSED = {
    "heads": lambda: ALiBi(0),
    "slopes is 'steep'": lambda: ALiBi(4, slopes="steep"),
    "slopes are 2": lambda: ALiBi(4, slopes=(0.5, 0.25)),
    "alibi_bias_max": lambda: ALiBi(4, alibi_bias_max=0),
    "buckets is 7": lambda: T5Bias(2, buckets=7),
    "trained_length is 0": lambda: T5Bias(2, trained_length=0),
    "trained_length is 1": lambda: Temperature(1, 1),
    "threshold": lambda: FIRE(2, threshold=0.0),
    "kernel": lambda: KERPLE(2, "exponential"),
    "exponent": lambda: KERPLE(2, "power", exponent=True),
    "dim is 7": lambda: Sandwich(2, 7),
    "first is 2": lambda: Sandwich(2, first=2),
    "bias is FIRE": lambda: Cyclic(4, FIRE(4), 12),
    r"bias is ALiBi\(heads=2\)": lambda: Cyclic(4, ALiBi(2), 12),
    "bias is Shaw": lambda: DAPE(4, Shaw(4, 8, reach=2)),
    "kernel is 2": lambda: DAPEv2(4, ALiBi(4), kernel=2),
    r"gates\[0\]": lambda: AdditiveGRAPE(4, 8, gates=("value",)),
    r"terms\[0\]": lambda: DeBERTa(2, 4, terms=("p2p",)),
    "far is 'theirs'": lambda: DeBERTa(2, 4, far="theirs"),
    "window is 0": lambda: SwinBias(1, (3, 0)),
    "pretrained_window": lambda: SwinV2Bias(1, 3, pretrained_window=0),
    "key_stride": lambda: DecomposedRelative(1, 1, 4, key_stride=5),
    "kv_heads is 3": lambda: PaTH(4, 8, 16, kv_heads=3),
    "dim is 9": lambda: TransformerXL(2, 4, 9),
    "blend": lambda: RePo(2, Rotary(8), 16, blend=1.5),
    "rotary is ALiBi": lambda: RemappedRotary(4, ALiBi(4), ReRoPE(6)),
    "arithmetic": lambda: SelectiveRoPE(4, FLOAT32, 16),
    "remapping is 6": lambda: RemappedRotary(4, Rotary(8), 6),
    "it must divide dim": lambda: SelectiveRoPE(4, Rotary(8), 7),
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
