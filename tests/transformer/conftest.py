"""What the tests of the transformer share."""

import json
from pathlib import Path

import pytest
import torch

from posenc import ALiBi, Learned, Positional, Rotary, Shaw, Sinusoidal, T5Bias, XPos

WORKED = json.loads((Path(__file__).parents[1] / "data" / "worked_examples.json").read_text())


@pytest.fixture
def worked():
    return WORKED


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


DIM, HEADS, HEAD_DIM = 16, 4, 4

POSITIONALS = {
    "none": lambda: Positional(),
    "sinusoidal": lambda: Positional(Sinusoidal(DIM)),
    "learned": lambda: Positional(Learned(DIM, 64, std=1.0)),
    "rotary": lambda: Positional(queries_keys=Rotary(HEAD_DIM)),
    "xpos": lambda: Positional(queries_keys=XPos(Rotary(HEAD_DIM))),
    "alibi": lambda: Positional(scores=ALiBi(HEADS)),
    "learned bias": lambda: Positional(scores=T5Bias(HEADS, 8, 20, std=1.0)),
    "content": lambda: Positional(scores=Shaw(HEADS, HEAD_DIM, 3, std=1.0)),
    "all places": lambda: Positional(
        [Sinusoidal(DIM), Learned(DIM, 64)],
        [Rotary(HEAD_DIM), XPos(Rotary(HEAD_DIM))],
        [ALiBi(HEADS), T5Bias(HEADS, 8, 20, std=1.0), Shaw(HEADS, HEAD_DIM, 3, std=1.0)],
    ),
}


@pytest.fixture(params=POSITIONALS, ids=[name.replace(" ", "-") for name in POSITIONALS])
def positional(request):
    """An encoding, or several, of every kind that reaches an encoder."""
    return POSITIONALS[request.param]()


@pytest.fixture(params=[n for n in POSITIONALS if n != "none"], ids=lambda n: n.replace(" ", "-"))
def placed(request):
    """Every kind but none at all."""
    return POSITIONALS[request.param]()
