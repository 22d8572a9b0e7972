"""The contract battery on encodings of tokens in grids."""

import pytest
import torch
from tests.contracts.checks import MORE, contract

from posenc import PEG, AxialLearned, AxialSinusoidal, Convolutional, LearnedGrid, LevelEmbedding
from posenc.testing import Case


def point(positions):
    """Each position as a point (y, x)."""
    return torch.stack((positions, 1 - 2 * positions), dim=-1)


def place(positions):
    """Each position as a point of an 8 × 8 grid, row after row."""
    return torch.stack((positions // 8, positions % 8), dim=-1)


def leveled(positions):
    """Each position as a point (y, x) on one of three levels."""
    return torch.stack((positions, -positions, positions // 2 % 3), dim=-1)


def frame(positions):
    """Each position as a point (t, y, x)."""
    return torch.stack((positions, -positions, 3 * positions), dim=-1)


def pixel(positions):
    """Each position as a pixel (y, x, rows, columns) of images of several sizes."""
    sizes = 5 + positions % 3, 9 - positions % 2
    return torch.stack((positions, 3 - positions, *sizes), dim=-1)


CHANGES = {
    "base": 100.0,
    "form": "rt_detr",
    "axes": 2,
    "stretch": 2.0,
    "scale": "sqrt_dim",
    "dropout": 0.5,
    "batch_first": False,
    "arithmetic": "float32",
}
FREE = {"base": 100.0, "scale": 2.0, "dropout": 0.5, "batch_first": False}
NORMALIZED = {**FREE, "axes": 2, "stretch": 1, "arithmetic": "exact"}
CASES = {
    "axial-sinusoidal": Case(
        AxialSinusoidal,
        {"dim": 16, "axes": 2},
        {name: value for name, value in CHANGES.items() if name != "axes"},
        lift=point,
    ),
    "learned-grid": Case(
        LearnedGrid,
        {"dim": 6, "size": (8, 8)},
        {"prefix": 2, "std": 0.5, "dropout": 0.5, "batch_first": False},
        limit=64,
        lift=place,
    ),
    "axial-learned": Case(
        AxialLearned,
        {"dim": 6, "size": (8, 8), "join": "forward"},
        {"join": "backward", "std": 0.5, "dropout": 0.5, "batch_first": False},
        limit=64,
        lift=place,
    ),
    "level-embedding": Case(
        LevelEmbedding, {"of": AxialSinusoidal(8)}, {"levels": 3, "std": 0.5}, lift=leveled
    ),
    "convolutional": Case(
        Convolutional,
        {"dim": 8, "kernel": 5, "groups": 2},
        {"depth": 2, "weight_norm": False, "layer_norm": True},
        bitwise=False,
    ),
    "peg": Case(PEG, {"dim": 4, "axes": 2}, {"kernel": 5}, lift=place, bitwise=False),
}
FORMS = {
    "timm": Case(
        AxialSinusoidal,
        {"dim": 12, "form": "timm", "axes": 2},
        {**FREE, "stretch": 2.0, "arithmetic": "float32"},
        lift=point,
    ),
    "cut": Case(
        AxialSinusoidal,
        {"dim": 9, "form": "positional_encodings", "axes": 2},
        {**FREE, "stretch": 2.0, "arithmetic": "float32"},
        lift=point,
    ),
    "cogvideox": Case(
        AxialSinusoidal,
        {"dim": 16, "form": "cogvideox", "axes": 3},
        {**FREE, "stretch": (1, 1.875, 1.875), "arithmetic": "float32"},
        lift=frame,
    ),
    "detr": Case(
        AxialSinusoidal,
        {"dim": 16, "form": "detr", "axes": 2, "stretch": 1, "arithmetic": "exact"},
        {**FREE, "form": "deformable_detr"},
        lift=pixel,
    ),
}

SLOW = pytest.mark.slow("compiling whole-number phases of two axes takes half a minute")
test_contract = contract(CASES, compiling=False)
test_compiled_contract = contract(CASES, SLOW, compiling=True)
test_contract_of_forms = contract(FORMS, MORE, compiling=False)
