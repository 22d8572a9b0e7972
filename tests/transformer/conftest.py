"""What the tests of the transformer share."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from posenc import (
    ALiBi,
    Learned,
    Positional,
    QueryKeyEncoding,
    RelativeBias,
    Rotary,
    ScoreEncoding,
    Sinusoidal,
)

WORKED = json.loads((Path(__file__).parents[1] / "data" / "worked_examples.json").read_text())


@pytest.fixture
def worked():
    return WORKED


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


class Content(ScoreEncoding):
    """A score encoding that depends on content: scores + tanh(q·k) · table."""

    is_relative = is_pairwise = True

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads

    def table(self, q_positions, k_positions, *, dtype=None):
        distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
        return (1 / (1 + distance.abs())).to(dtype).unsqueeze(-3)

    def encode(self, scores, table, *, q=None, k=None, scale=None):
        groups = q.shape[-3] // k.shape[-3]
        met = (q @ k.repeat_interleave(groups, dim=-3).mT).tanh()
        return (scores + met * table).to(scores.dtype)


class LearnedBias(RelativeBias):
    """A relative bias with a parameter: −|w_h| · min(|distance|, 8)."""

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads
        self.weight = torch.nn.Parameter(torch.rand(heads))

    def profile(self, distance: Tensor, *, dtype=None):
        near = distance.abs().clamp(max=8)
        slopes = self.weight.abs().view(-1, *[1] * distance.ndim)
        return -(slopes * near).to(dtype or torch.float32)


class Stretch(QueryKeyEncoding):
    """Queries and keys that are not treated alike: q · a^p and k · a^(−p), as xPos does."""

    is_relative = True

    def __init__(self, head_dim: int):
        super().__init__()
        self.head_dim = head_dim

    def table(self, positions, *, dtype=None):
        return (1.05 ** positions.double()).to(dtype)[..., None]

    def encode_queries(self, q, table):
        return (q * table.unsqueeze(-3)).to(q.dtype)

    def encode_keys(self, k, table):
        return (k / table.unsqueeze(-3)).to(k.dtype)


DIM, HEADS, HEAD_DIM = 16, 4, 4

POSITIONALS = {
    "none": lambda: Positional(),
    "sinusoidal": lambda: Positional(Sinusoidal(DIM)),
    "learned": lambda: Positional(Learned(DIM, 64, std=1.0)),
    "rotary": lambda: Positional(queries_keys=Rotary(HEAD_DIM)),
    "stretch": lambda: Positional(queries_keys=Stretch(HEAD_DIM)),
    "alibi": lambda: Positional(scores=ALiBi(HEADS)),
    "learned bias": lambda: Positional(scores=LearnedBias(HEADS)),
    "content": lambda: Positional(scores=Content(HEADS)),
    "all places": lambda: Positional(
        [Sinusoidal(DIM), Learned(DIM, 64)],
        [Rotary(HEAD_DIM), Stretch(HEAD_DIM)],
        [ALiBi(HEADS), LearnedBias(HEADS), Content(HEADS)],
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
