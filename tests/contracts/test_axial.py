"""The contract battery on encodings of points of a grid."""

import torch
from tests.contracts.checks import COMPILING, MORE, contract

from posenc import (
    AxialForm,
    AxialRotary,
    CayleySTRING,
    CirculantSTRING,
    ComRoPE,
    DirectedRotary,
    LieRE,
    LTXRotary,
    MHRoPE,
    Rotary,
    VJEPA2Rotary,
)
from posenc.encodings.queries_keys.directed import golden_gate_vectors
from posenc.frequencies import Geometric
from posenc.testing import Case


def three(positions: torch.Tensor) -> torch.Tensor:
    """Time, height and width, no two of them alike."""
    return torch.stack((positions, positions + 5, 2 * positions + 1), dim=-1)


BY_AXIS = AxialForm(
    "by_axis",
    "thw",
    "[w | t | h]",
    (4, 4, 4),
    (10.0, 20.0, 30.0),
    "half",
    by_axis=True,
    order="wth",
    rotated="suffix",
)
DEALT = AxialForm("dealt", "thw", "t, h, w, t", (6, 4, 2), 50.0, arrangement="interleaved")

CASES = {
    "vjepa2": Case(
        VJEPA2Rotary,
        {"head_dim": 16},
        {"head_dim": 24, "base": 100.0, "heads_first": False},
        lift=three,
    ),
    "mhrope": Case(
        MHRoPE,
        {"rotary": Rotary(8), "heads": 4, "sections": (1, 1)},
        {"rotary": Rotary(8, pairing="interleaved"), "heads": 2, "sections": (1, 2)},
        kv_heads=4,
        lift=lambda positions: torch.stack((positions, 2 * positions + 1), dim=-1),
    ),
    "liere": Case(
        LieRE,
        {"head_dim": 8, "axes": 3, "heads": 4},
        {"head_dim": 12, "block": 4, "heads": 2, "heads_first": False},
        kv_heads=4,
        limit=2**18,
        bitwise=False,
        lift=three,
    ),
    "comrope": Case(
        ComRoPE,
        {"head_dim": 12, "axes": 3, "block": 4},
        {"head_dim": 24, "block": 2, "heads": 2, "variant": "AP", "std": 0.1, "heads_first": False},
        limit=2**18,
        bitwise=False,
        lift=three,
    ),
    "cayley-string": Case(
        CayleySTRING,
        {"head_dim": 8, "axes": 3},
        {"head_dim": 12, "base": 10.0, "std": 1.0, "heads_first": False},
        limit=2**18,
        bitwise=False,
        lift=three,
    ),
    "circulant-string": Case(
        CirculantSTRING,
        {"head_dim": 8, "axes": 3},
        {"head_dim": 9, "std": 1.0, "heads_first": False},
        limit=2**18,
        bitwise=False,
        lift=three,
    ),
    "directed": Case(
        DirectedRotary,
        {"vectors": golden_gate_vectors(8, axes=3, heads=4)},
        {
            "vectors": golden_gate_vectors(8, axes=3, heads=4, fastest=30.0),
            "pairing": "interleaved",
            "heads_first": False,
        },
        kv_heads=4,
        lift=three,
    ),
    "ltx": Case(
        LTXRotary,
        {"head_dim": 10, "heads": 4},
        {
            "head_dim": 12,
            "heads": 2,
            "sizes": (20, 64, 7.5),
            "base": 100.0,
            "pairing": "half",
            "heads_first": False,
        },
        kv_heads=4,
        limit=2**59,
        lift=three,
    ),
}
CHANGES = {
    "base": 7.0,
    "form": "wan",
    "split": (2, 6, 2),
    "schedules": (Geometric(2), Geometric(4), Geometric(2)),
    "stretch": (1, 1, 3),
    "arithmetic": "float32",
}
VARIANTS = {
    "comrope-ap": Case(
        ComRoPE,
        {"head_dim": 12, "axes": 3, "block": 2, "heads": 4, "variant": "AP", "heads_first": False},
        {"block": 4, "std": 0.1},
        kv_heads=4,
        limit=2**18,
        bitwise=False,
        lift=three,
        heads_first=False,
    ),
    "directed-alike": Case(
        DirectedRotary,
        {"vectors": golden_gate_vectors(8, axes=3)[0], "heads_first": False},
        {"vectors": golden_gate_vectors(8, axes=3, still=0.5)[0], "pairing": "interleaved"},
        lift=three,
        heads_first=False,
    ),
    "axial-by-axis": Case(
        AxialRotary,
        {"head_dim": 14, "form": BY_AXIS},
        CHANGES | {"head_dim": 16, "heads_first": False},
        lift=three,
    ),
    "axial-dealt-seq-first": Case(
        AxialRotary,
        {"head_dim": 12, "form": DEALT, "heads_first": False},
        CHANGES,
        lift=three,
        heads_first=False,
    ),
}

test_contract = contract(CASES, compiling=False)
test_compiled_contract = contract(CASES, COMPILING, compiling=True)
test_contract_of_every_variant = contract(VARIANTS, MORE, compiling=False)
