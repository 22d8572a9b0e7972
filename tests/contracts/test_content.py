"""The contract battery on encodings of scores that look at content in ways of their own."""

from tests.contracts.checks import contract

from posenc import (
    CABLE,
    DAPE,
    KERPLE,
    AdditiveGRAPE,
    ALiBi,
    Cyclic,
    DAPEv2,
    LogTemperature,
    PaTH,
    RelativeLogits,
    T5Bias,
)
from posenc.testing import Case


def adapted(heads, hidden):
    return DAPE(heads, KERPLE(heads), hidden)


def around_a_ring(heads, period):
    return Cyclic(heads, T5Bias(heads, buckets=8, max_distance=5), period)


CASES = {
    "additive-grape": Case(
        AdditiveGRAPE,
        {"heads": 4, "head_dim": 8, "omega": 2.0},
        {"gates": ("key",), "omega": 0.5, "std": 0.25},
        bitwise=False,
    ),
    "cable": Case(CABLE, {"heads": 4, "dim": 6}, {"std": 1.0}, bitwise=False),
    "cyclic": Case(Cyclic, {"heads": 4, "bias": ALiBi(4), "period": 7}, {"period": 5}),
    "dape": Case(DAPE, {"heads": 4, "bias": ALiBi(4), "hidden": 5}, {"hidden": 6}, bitwise=False),
    "path": Case(
        PaTH,
        {"heads": 4, "head_dim": 8, "dim": 6, "kv_heads": 2, "rank": 3, "std": 1.0},
        {"rank": None, "std": 0.5},
        bitwise=False,
    ),
    "relative-logits": Case(
        RelativeLogits,
        {"heads": 4, "dim": 6, "width": 3, "extent": 3, "std": 1.0},
        {"width": 2, "extent": 4, "clip": 0.5, "std": 0.5},
        bitwise=False,
    ),
    "dape-v2": Case(
        DAPEv2,
        {"heads": 4, "bias": ALiBi(4), "hidden": 5},
        {"hidden": 6, "kernel": 5},
        bitwise=False,
    ),
    "log-temperature": Case(LogTemperature, {"heads": 4, "floor": 3}, {"floor": 5, "alpha": 0.5}),
}
VARIANTS = {
    "path-of-full-rank": Case(
        PaTH,
        {"heads": 2, "head_dim": 8, "dim": 6, "kv_heads": None, "rank": None, "std": 1.0},
        {"rank": 2},
        heads=2,
        bitwise=False,
    ),
    "cyclic-buckets": Case(around_a_ring, {"heads": 4, "period": 7}),
    "dape-of-kerple": Case(adapted, {"heads": 4, "hidden": 5}, bitwise=False),
    "relative-logits-clipped": Case(
        RelativeLogits,
        {"heads": 4, "dim": 6, "width": 3, "extent": 3, "std": 1.0, "clip": 1.0},
        {"clip": 0.5},
        bitwise=False,
    ),
}

test_contract = contract(CASES)
test_contract_of_every_variant = contract(VARIANTS, compiling=False)
