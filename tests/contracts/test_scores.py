"""The contract battery on every encoding of the scores place."""

import torch
from tests.contracts.checks import MORE, contract

from posenc import (
    FIRE,
    KERPLE,
    ALiBi,
    CoPE,
    DeBERTa,
    DecomposedRelative,
    DualChunk,
    Forgetting,
    KERPLEWeight,
    RemappedRotary,
    ReRoPE,
    Rotary,
    Sandwich,
    SelfExtend,
    Shaw,
    SwinBias,
    SwinV2Bias,
    T5Bias,
    Temperature,
    TransformerXL,
)
from posenc.testing import Case


def in_window(positions):
    """Points (y, x) of a window of 4 × 8, as far out as the positions are."""
    points = torch.stack([positions // 8 % 4, positions % 8], dim=-1)
    return points + (positions >> 20 << 20).unsqueeze(-1)


def at_even_points(positions):
    """Points that are two rows and two columns apart, as coarser keys are."""
    return 2 * in_window(positions)


def some_heads(heads, part):
    return ALiBi(heads, slopes="geometric")[part]


def relative_sum(heads):
    return T5Bias(heads, buckets=8, max_distance=5) + ALiBi(heads)


def absolute_sum(heads):
    return (FIRE(heads, threshold=4.0) + relative_sum(2 * heads)[1 : 1 + heads])[:]


CASES = {
    # With a power of two both kinds of slopes are the same; the argument shows with 6 heads.
    "alibi": Case(
        ALiBi, {"heads": 4, "slopes": "authors"}, {"is_causal": True, "alibi_bias_max": 4.0}
    ),
    "sum": Case(relative_sum, {"heads": 4}),
    "cope": Case(
        CoPE,
        {"heads": 4, "head_dim": 8, "max_positions": 3, "std": 1.0},
        {"scaled": True, "separate_keys": True},
        bitwise=False,
    ),
    "deberta": Case(
        DeBERTa,
        {"heads": 4, "head_dim": 8, "buckets": 6, "max_distance": 6, "std": 1.0},
        {
            "buckets": 4,
            "max_distance": 12,
            "terms": ("c2p",),
            "far": "transformers",
            "trained_length": 2,
        },
        bitwise=False,
    ),
    "decomposed": Case(
        DecomposedRelative,
        {"heads": 4, "head_dim": 8, "size": (4, 8), "key_stride": 1},
        {"std": 0.5},
        bitwise=False,
        lift=in_window,
    ),
    "fire": Case(
        FIRE,
        {"heads": 4, "threshold": 4.0},
        {"hidden": 5, "c": 3.0, "negative_slope": 0.3},
        bitwise=False,
    ),
    "forgetting": Case(
        Forgetting, {"heads": 4, "head_dim": 8}, {"std": 1.0, "bias": 1.0}, bitwise=False
    ),
    "kerple": Case(KERPLE, {"heads": 4}, {"kernel": "power", "exponent": True}),
    "kerple-weight": Case(KERPLEWeight, {"heads": 4}),
    "remapped-rotary": Case(
        RemappedRotary,
        {"heads": 4, "rotary": Rotary(8), "remapping": SelfExtend(group=4, window=1)},
        bitwise=False,
    ),
    "sandwich": Case(Sandwich, {"heads": 4, "dim": 8}, {"base": 100.0, "first": 1}, bitwise=False),
    "shaw": Case(
        Shaw,
        {"heads": 4, "head_dim": 8, "reach": 2},
        {"reach": 3, "std": 1.0, "values": True},
        bitwise=False,
    ),
    "swin": Case(
        SwinBias, {"heads": 4, "window": (4, 8)}, {"std": 0.5, "class_token": True}, lift=in_window
    ),
    "swin-v2": Case(
        SwinV2Bias,
        {"heads": 4, "window": (4, 8), "hidden": 6},
        {"pretrained_window": 5},
        lift=in_window,
    ),
    "t5": Case(
        T5Bias,
        {"heads": 4, "buckets": 8, "max_distance": 5},
        {"bidirectional": False, "buckets": 6, "max_distance": 9, "std": 1.0, "trained_length": 2},
    ),
    "temperature": Case(Temperature, {"heads": 4, "trained_length": 3}, {"scale": 2.0}),
    "transformer-xl": Case(
        TransformerXL,
        {"heads": 4, "head_dim": 8, "std": 1.0},
        {"dim": 6, "base": 100.0, "clamp_len": 2},
        bitwise=False,
    ),
}
VARIANTS = {
    "alibi-6": Case(
        ALiBi,
        {"heads": 6, "alibi_bias_max": 8.0},
        {"is_causal": True, "slopes": "geometric"},
        heads=6,
    ),
    "alibi-slopes": Case(
        ALiBi,
        {"heads": 2, "slopes": (0.5, 0.25), "alibi_bias_max": 8.0, "is_causal": True},
        {"slopes": (0.5, -1.0)},
        heads=2,
    ),
    "alibi-of-some-heads": Case(some_heads, {"heads": 6, "part": slice(1, 5)}),
    "sum-with-fire": Case(absolute_sum, {"heads": 4}, bitwise=False),
    "cope-separate-keys": Case(
        CoPE,
        {
            "heads": 4,
            "head_dim": 8,
            "max_positions": 3,
            "std": 1.0,
            "separate_keys": True,
            "scaled": True,
        },
        bitwise=False,
    ),
    "decomposed-coarse": Case(
        DecomposedRelative,
        {"heads": 4, "head_dim": 8, "size": (8, 16), "key_stride": 2},
        {"std": 0.5, "key_stride": 1},
        bitwise=False,
        lift=at_even_points,
    ),
    "kerple-power": Case(KERPLE, {"heads": 4, "kernel": "power", "exponent": False}),
    "kerple-exponent": Case(KERPLE, {"heads": 4, "exponent": True, "kernel": "log"}),
    "remapped-rotary-cut-off": Case(
        RemappedRotary,
        {"heads": 4, "rotary": Rotary(8), "remapping": ReRoPE(window=1)},
        bitwise=False,
    ),
    "shaw-values": Case(
        Shaw,
        {"heads": 4, "head_dim": 8, "reach": 2, "values": True},
        {"reach": 3, "std": 1.0},
        bitwise=False,
    ),
    "t5-causal": Case(
        T5Bias,
        {"heads": 4, "bidirectional": False, "trained_length": 9, "buckets": 6, "max_distance": 5},
        {"std": 1.0},
    ),
    "remapped-rotary-leaky": Case(
        RemappedRotary,
        {"heads": 4, "rotary": Rotary(8), "remapping": ReRoPE(window=1, leak=3)},
        bitwise=False,
    ),
    "remapped-rotary-dual-chunk": Case(
        RemappedRotary,
        {"heads": 4, "rotary": Rotary(8), "remapping": DualChunk(chunk=4, local=1)},
        bitwise=False,
    ),
}

test_contract = contract(CASES)
test_contract_of_every_variant = contract(VARIANTS, MORE, compiling=False)
