"""The contract battery on the encodings of queries and keys beyond plain rotation."""

from tests.contracts.checks import contract

from posenc import GRAPE, CounterRotary, FoPE, PoPE, RePo, Rotary, SelectiveRoPE
from posenc.frequencies import Geometric
from posenc.testing import Case

CASES = {
    "counter": Case(
        CounterRotary,
        {"rotary": Rotary(8, head_dim=12)},
        {"rotary": Rotary(8, head_dim=12, pairing="interleaved", rotated="suffix")},
    ),
    "fope": Case(
        FoPE,
        {"frequencies": 8, "heads": 4, "trained_length": 100},
        {
            "frequencies": Geometric(8, base=100.0),
            "base": 100,
            "heads": 2,
            "trained_length": 1000,
            "gain": 0.0,
            "slow": "code",
            "heads_first": False,
        },
        kv_heads=4,
        bitwise=False,
    ),
    # torch rounds softplus by the shape.
    "pope": Case(
        PoPE,
        {"frequencies": 6, "heads": 4, "head_dim": 8, "phases": "uniform"},
        {
            "frequencies": Geometric(12, base=100.0),
            "base": 100,
            "heads": 2,
            "head_dim": 10,
            "phases": "zero",
            "heads_first": False,
        },
        kv_heads=4,
        bitwise=False,
    ),
    "grape": Case(
        GRAPE,
        {"head_dim": 8, "heads": 4},
        {"head_dim": 6, "heads": 2, "speed": 0.5, "std": 1.0, "heads_first": False},
        kv_heads=4,
        limit=2**18,
        bitwise=False,
    ),
    "repo": Case(
        RePo,
        {"heads": 4, "rotary": Rotary(8), "dim": 6, "hidden": 3, "blend": 0.5, "std": 1.0},
        {"rotary": Rotary(8, base=100), "hidden": 2, "blend": 0.25, "std": 0.5},
        limit=2**18,
        bitwise=False,
    ),
    "selective-rope": Case(
        SelectiveRoPE,
        {"heads": 4, "rotary": Rotary(8), "dim": 8, "rank": 3},
        {"rank": 2, "kernel": 2, "gate": True, "bias": True, "rotary": Rotary(8, base=10.0)},
        bitwise=False,
    ),
}
VARIANTS = {
    "grape-seq-first": Case(
        GRAPE,
        {"head_dim": 8, "heads": 2, "heads_first": False},
        {"speed": 2.0, "std": 0.5},
        limit=2**18,
        bitwise=False,
        heads_first=False,
    ),
    "pope-seq-first": Case(
        PoPE,
        {"frequencies": 8, "heads": 2, "phases": "uniform", "heads_first": False},
        {"base": 100, "head_dim": 10, "phases": "zero"},
        bitwise=False,
        heads_first=False,
    ),
    "counter-seq-first": Case(
        CounterRotary,
        {"rotary": Rotary(8, pairing="interleaved", heads_first=False)},
        {"rotary": Rotary(8, base=100, heads_first=False)},
        heads_first=False,
    ),
    "fope-code": Case(
        FoPE,
        {"frequencies": 8, "heads": 2, "trained_length": 100, "slow": "code", "heads_first": False},
        {"base": 100, "gain": 0.5},
        bitwise=False,
        heads_first=False,
    ),
}

test_contract = contract(CASES)
test_contract_of_every_variant = contract(VARIANTS, compiling=False)
