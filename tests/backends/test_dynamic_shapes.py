"""Exported programs of attention take any batch and any length, and give what it gives."""

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from posenc import FIRE, KERPLE, ALiBi, Positional, Rotary, T5Bias, attention

HEADS, WIDTH = 4, 16
CASES = {
    "none": ({}, {}),
    "order": ({}, {"is_causal": True}),
    "window": ({}, {"is_causal": True, "window": 5}),
    "rotary": ({"queries_keys": Rotary(WIDTH)}, {"is_causal": True}),
    "rotary, window": ({"queries_keys": Rotary(WIDTH)}, {"is_causal": True, "window": 5}),
    "ALiBi": ({"scores": ALiBi(HEADS)}, {"is_causal": True}),
    "T5": ({"scores": T5Bias(HEADS, std=1.0)}, {"is_causal": True}),
    "T5, frozen": ({"scores": T5Bias(HEADS, std=1.0).requires_grad_(False)}, {"is_causal": True}),
    "KERPLE": ({"scores": KERPLE(HEADS)}, {"is_causal": True}),
    "FIRE": ({"scores": FIRE(HEADS)}, {"is_causal": True}),
}
SIZES = [(2, 10, 24), (3, 200, 300), (1, 7, 7)]  # batch, queries, keys; the first is exported
BATCH, QUERIES, KEYS = Dim("batch"), Dim("queries"), Dim("keys")

pytestmark = pytest.mark.compiles


class Itself(nn.Module):
    """Tokens that attend to each other."""

    def __init__(self, case: str):
        super().__init__()
        encodings, self.given = CASES[case]
        self.positional = Positional(**encodings)

    def forward(self, x: Tensor) -> Tensor:
        return attention(x, x, x, positional=self.positional, **self.given)


class Others(Itself):
    """Queries that attend to keys, of which they are the last."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return attention(q, k, k, positional=self.positional, **self.given)


SHAPES = {Itself: ({0: BATCH, 2: KEYS},), Others: ({0: BATCH, 2: QUERIES}, {0: BATCH, 2: KEYS})}


def content(kind: type, batch: int, queries: int, keys: int) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    row = torch.randn(batch, 2, keys, WIDTH)
    if kind is Itself:
        return (row.repeat(1, 2, 1, 1),)
    return torch.randn(batch, HEADS, queries, WIDTH), row


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("case", CASES)
def test_a_program_serves_other_sizes(case, kind):
    module = kind(case)
    given = content(kind, *SIZES[0])
    program = torch.export.export(module, given, dynamic_shapes=SHAPES[kind]).module()
    for sizes in SIZES:
        x = content(kind, *sizes)
        torch.testing.assert_close(program(*x), module(*x), rtol=1e-4, atol=1e-5)
