"""The contract battery on every encoding of the queries-and-keys place."""

import torch
from tests.contracts.checks import MORE, contract

from posenc import (
    AxialRotary,
    DINOv3Rotary,
    MultimodalRotary,
    QueryTemperature,
    RoPEMixed,
    Rotary,
    StartTokenRotary,
    XPos,
)
from posenc.frequencies import Geometric, YaRN
from posenc.testing import Case

ROTARY_CHANGES = {
    "frequencies": Geometric(8, base=100.0),
    "base": 100,
    "head_dim": 16,
    "pairing": "interleaved",
    "rotated": "suffix",
    "heads_first": False,
    "arithmetic": "float32",
}


AXIAL_CHANGES = {
    "head_dim": 16,
    "base": 1e4,
    "form": "pixtral",
    "split": (6, 2),
    "schedules": (Geometric(4, 50.0), Geometric(4)),
    "stretch": (2.0, 1.0),
    "heads_first": False,
    "arithmetic": "float32",
}


def two(positions: torch.Tensor) -> torch.Tensor:
    """Rows and columns, no two of them alike."""
    return torch.stack((positions, 3 * positions + 1), dim=-1)


def three(positions: torch.Tensor) -> torch.Tensor:
    """Time, height and width, no two of them alike."""
    return torch.stack((positions, positions + 5, 2 * positions + 1), dim=-1)


def without(changes: dict, name: str) -> dict:
    return {key: value for key, value in changes.items() if key != name}


CASES = {
    "rotary": Case(Rotary, {"frequencies": 8, "head_dim": 12}, ROTARY_CHANGES),
    "multimodal": Case(
        MultimodalRotary,
        {"rotary": Rotary(8), "sections": (2, 1, 1)},
        {
            "rotary": Rotary(8, pairing="interleaved"),
            "sections": (1, 2, 1),
            "arrangement": "interleaved",
        },
        lift=three,
    ),
    "axial": Case(AxialRotary, {"head_dim": 8}, AXIAL_CHANGES, lift=two),
    "dinov3": Case(
        DINOv3Rotary,
        {"head_dim": 8, "grid": (140, 400)},
        {
            "head_dim": 16,
            "grid": (140, 500),
            "base": 1e4,
            "heads_first": False,
            "periods": (1.0, 7.0),
            "normalize": "max",
            "shift": 0.5,
            "jitter": 1.5,
            "rescale": 2.0,
        },
        limit=128,
        lift=two,
    ),
    "mixed": Case(
        RoPEMixed,
        {"head_dim": 8, "heads": 4},
        {"head_dim": 16, "heads": 2, "base": 100.0, "heads_first": False},
        kv_heads=4,
        limit=2**18,
        lift=two,
    ),
    "xpos": Case(
        XPos,
        {"rotary": Rotary(8, head_dim=12)},
        {
            "rotary": Rotary(8, head_dim=12, pairing="interleaved"),
            "scale_base": 2000.0,
            "gamma": 1.0,
            "origin": 100,
        },
        limit=30_000,
    ),
    "start-tokens": Case(
        StartTokenRotary,
        {"rotary": Rotary(8, head_dim=12), "start": Rotary(8, head_dim=12, base=100), "count": 3},
        {
            "rotary": Rotary(8, head_dim=12, base=1e6),
            "start": Rotary(8, head_dim=12, base=10),
            "count": 2,
        },
    ),
    "temperature": Case(
        QueryTemperature,
        {"head_dim": 8, "period": 1},
        {"head_dim": 12, "scale": 0.2, "period": 2, "form": "beam", "heads_first": False},
    ),
}
VARIANTS = {
    "rotary-yarn": Case(
        Rotary,
        {"frequencies": YaRN(Geometric(8), 16.0, 4096), "head_dim": 12, "base": None},
        without(ROTARY_CHANGES, "base"),
    ),
    "multimodal-interleaved": Case(
        MultimodalRotary,
        {
            "rotary": Rotary(8, heads_first=False),
            "arrangement": "interleaved",
            "sections": (2, 1, 1),
        },
        {"rotary": Rotary(Geometric(8, 10.0), heads_first=False), "arrangement": "contiguous"},
        lift=three,
        heads_first=False,
    ),
    "axial-pixtral": Case(
        AxialRotary,
        {"head_dim": 8, "form": "pixtral", "heads_first": False},
        AXIAL_CHANGES | {"form": "rope_vit", "split": (2, 2), "heads_first": True, "base": 1e3},
        lift=two,
        heads_first=False,
    ),
    "mixed-seq-first": Case(
        RoPEMixed,
        {"head_dim": 8, "heads": 4, "heads_first": False},
        {"head_dim": 16, "heads": 2, "base": 100.0},
        kv_heads=4,
        limit=2**18,
        lift=two,
        heads_first=False,
    ),
    "temperature-seq-first": Case(
        QueryTemperature,
        {"head_dim": 8, "period": 1, "heads_first": False},
        {"scale": 0.2, "form": "mistral", "period": 2},
        heads_first=False,
    ),
    "rotary-whole": Case(
        Rotary, {"frequencies": 8, "rotated": "prefix"}, without(ROTARY_CHANGES, "rotated")
    ),
    "rotary-interleaved": Case(
        Rotary,
        {"frequencies": 8, "head_dim": 12, "pairing": "interleaved", "rotated": "suffix"},
        ROTARY_CHANGES | {"pairing": "half", "rotated": "prefix"},
    ),
    "rotary-seq-first": Case(
        Rotary,
        {"frequencies": 8, "head_dim": 12, "heads_first": False},
        ROTARY_CHANGES | {"heads_first": True},
        heads_first=False,
    ),
}

test_contract = contract(CASES)
test_contract_of_every_variant = contract(VARIANTS, MORE, compiling=False)
