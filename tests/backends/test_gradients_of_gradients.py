"""A penalty on gradients is what the definition gives, or an error: never a part of it, or none."""

import pytest
import torch

from posenc import KERPLE, ALiBi, Positional, Rotary, T5Bias, attention

SEQ = 600
"""So long that blocks are taken where nobody insists on a backend."""

CASES = {
    "rotary": ({"queries_keys": Rotary(8)}, {}),
    "alibi": ({"scores": ALiBi(2)}, {}),
    "learned": ({"scores": T5Bias(2, std=1.0)}, {}),
    "learned, far keys apart": ({"scores": KERPLE(2)}, {}),
    "sinks": ({}, {"sinks": torch.zeros(2, dtype=torch.float64)}),
    "softcap": ({}, {"softcap": 3.0}),
}


@pytest.fixture(scope="module")
def content():
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(1, 2, SEQ, 8, generator=generator, dtype=torch.float64) for _ in range(3)]
    return made, torch.randn(8, 8, generator=generator, dtype=torch.float64)


def penalty(content, weight, power, backend, case):
    """The gradient, by a weight, of the squares of the gradient of a loss."""
    encodings, given = CASES[case]
    weight = weight.clone().requires_grad_()
    query, key, value = content
    query = query @ weight
    positional = Positional(**encodings).double()
    out = attention(query, key, value, is_causal=True, positional=positional, backend=backend,
                    **given)  # fmt: skip
    (slope,) = torch.autograd.grad(out.pow(power).sum(), query, create_graph=True)
    (slope.square().sum() + 0 * weight.sum()).backward()
    return slope.detach(), weight.grad


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("power", [1, 2])
def test_no_term_is_left_out(content, case, power):
    given, weight = content
    first, want = penalty(given, weight, power, "explicit", case)
    assert want.abs().max() > 0.1
    for backend in (None, "strided"):
        try:
            slope, got = penalty(given, weight, power, backend, case)
        except RuntimeError as error:
            told = "differentiated again", "is not implemented"
            assert any(words in str(error) for words in told), error  # noqa: PT017
            continue
        torch.testing.assert_close(slope, first)
        torch.testing.assert_close(got, want)
