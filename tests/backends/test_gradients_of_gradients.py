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


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("of", ["query", "key", "value", "weight"])
def test_no_term_is_left_out_where_autograd_fills_in_zeros(content, case, of):
    """``torch.autograd.functional`` takes what nothing leads to for constant."""
    (query, key, value), weight = content
    given = {"query": query, "key": key, "value": value, "weight": weight}
    encodings, more = CASES[case]
    positional = Positional(**encodings).double()

    def product(backend):
        def first(x):
            made = {**given, of: x}
            query = made["query"].requires_grad_()
            out = attention(query, made["key"], made["value"], is_causal=True,
                            positional=positional, backend=backend, **more)  # fmt: skip
            (slope,) = torch.autograd.grad((out @ made["weight"]).sum(), query, create_graph=True)
            return slope.square().sum()

        return torch.autograd.functional.vjp(first, given[of])[1]

    want = product("explicit")
    assert want.abs().max() > 1e-3
    try:
        got = product("strided")
    except RuntimeError as error:
        told = "differentiated again", "is not implemented"
        assert any(words in str(error) for words in told), error  # noqa: PT017
        return
    torch.testing.assert_close(got, want)
