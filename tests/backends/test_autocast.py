"""Inside autocast scores are summed as outside of it, and differentiated as they were summed."""

import pytest
import torch

from posenc import KERPLE, ALiBi, Positional, T5Bias, Temperature, attention

HEADS, WIDTH, LENGTH = 2, 8, 640

EXPLICIT = "scores themselves"
CASES = {
    "softcap": ({}, {"softcap": 50.0}, WIDTH),
    "sinks of narrow values": ({}, {"sinks": torch.zeros(HEADS)}, WIDTH // 2),
    "learned": ({"scores": KERPLE(HEADS)}, {}, WIDTH),
    "learned, far keys alike": ({"scores": T5Bias(HEADS, 8, 16, std=1.0)}, {}, WIDTH),
    EXPLICIT: ({"scores": Temperature(HEADS)}, {}, WIDTH),
}
"""Those of which posenc forms scores; where torch does, it rounds content as everywhere."""


def content(value_dim=WIDTH) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    widths = WIDTH, WIDTH, value_dim
    made = [torch.randn(1, HEADS, LENGTH, width, generator=generator) for width in widths]
    return [2.5 * x for x in made]


def outside(run):
    return run()


def inside(run):
    with torch.autocast("cpu", torch.bfloat16):
        return run()


@pytest.mark.parametrize(
    ("case", "backward"),
    [(case, outside) for case in CASES]
    + [(case, inside) for case in CASES if case != EXPLICIT],  # whose backward pass is torch's own
)
def test_results_and_gradients_are_those_of_float32(case, backward):
    encodings, given, value_dim = CASES[case]
    positional = Positional(**encodings)

    def made(forward, backward):
        leaves = [x.requires_grad_() for x in content(value_dim)]
        out = forward(lambda: attention(*leaves, is_causal=True, positional=positional, **given))
        wanted = [*leaves, *positional.parameters()]
        return [out, *backward(lambda: torch.autograd.grad(out.sin().sum(), wanted))]

    for got, want in zip(made(inside, backward), made(outside, outside), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("scores", [ALiBi(HEADS, slopes=(0.001, 0.01)), KERPLE(HEADS)], ids=str)
@pytest.mark.parametrize("backend", ["strided", "dense"])
def test_autocast_rounds_content_and_no_bias(scores, backend):
    given = {"positional": Positional(scores=scores.requires_grad_(False)), "backend": backend}
    for grads in (True, False):
        wide, narrow = (
            [x.to(dtype).requires_grad_(grads) for x in content()]
            for dtype in (torch.float32, torch.bfloat16)
        )
        got = inside(lambda leaves=wide: attention(*leaves, **given))
        assert torch.equal(got.bfloat16(), attention(*narrow, **given))


SCORES = {"none": (), "ALiBi": ALiBi(HEADS), "T5": T5Bias(HEADS, std=1.0)}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("length", [100, LENGTH])
@pytest.mark.parametrize("sunk", [False, True])
def test_content_of_several_dtypes_comes_in_one(scores, length, sunk):
    """As normed queries and keys stay in float32, beside values of a linear map."""
    query, key, value = (x[:, :, :length] for x in content())
    given = {"positional": Positional(scores=scores), "is_causal": True}
    given |= {"sinks": torch.zeros(HEADS)} if sunk else {}
    got = inside(lambda: attention(query, key, value.bfloat16(), **given))
    want = inside(lambda: attention(*(x.bfloat16() for x in (query, key, value)), **given))
    assert got.dtype == torch.bfloat16
    assert torch.equal(got, want)
