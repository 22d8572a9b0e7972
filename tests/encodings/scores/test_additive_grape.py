"""Additive GRAPE: numbers of its authors' classes, ALiBi as its limit, and what its gates see."""

from fractions import Fraction
from math import log

import pytest
import torch
from tests.encodings.authors.values import SINGLE, eighths, fill, numbers

from posenc import AdditiveGRAPE, ALiBi
from posenc.positions import Coordinates

LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


@pytest.mark.parametrize("gates", [("query",), ("key",), ("query", "key")])
def test_it_is_the_authors_class(gates):
    """model-architectures/GRAPE@f5b539f, model/llama-mha-grape-a-{key,query,querykey}gated.py.

    KeyGatedAdditiveBias and its like for 2 heads of width 3 and 4 tokens.
    """
    grape = AdditiveGRAPE(2, 3, gates=gates).double()
    with torch.no_grad():
        grape.omega.copy_(torch.tensor([0.5, -1.0]))
    for start, direction in ((3, grape.u), (4, grape.v)):
        if direction is not None:
            fill(direction, start=start)
    q, k = (eighths(1, 4, 2, 3, start=n).transpose(1, 2) for n in (1, 2))
    made = grape(torch.zeros(1, 2, 4, 4).double(), q=q, k=k)[0][:, LOWER]
    torch.testing.assert_close(
        made.detach().ravel(), numbers(f"additive_grape {'+'.join(gates)}"), **SINGLE
    )


@pytest.mark.parametrize("gates", [("query",), ("key",), ("query", "key")])
def test_where_gates_see_nothing_it_is_alibi(gates, content):
    q, k, _ = content()
    grape = AdditiveGRAPE(4, 8, gates=gates, omega=0.7).double()
    for direction in (grape.u, grape.v):
        if direction is not None:
            torch.nn.init.zeros_(direction)
    slopes = [slope * 0.7 * log(2) * len(gates) for slope in ALiBi(4).slopes]
    scores, seconds = q @ k.mT, Coordinates(range(12), scale=Fraction(1, 4))
    for positions in ((), (seconds, seconds)):
        want = ALiBi(4, slopes=slopes, is_causal=True)(scores, *positions)
        made = grape(scores, *positions, q=q, k=k)
        torch.testing.assert_close(made, want, rtol=0, atol=1e-7)
