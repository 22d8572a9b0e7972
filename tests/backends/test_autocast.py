"""Inside autocast scores are summed as outside of it, and differentiated as they were summed."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from posenc import KERPLE, ALiBi, Positional, T5Bias, Temperature, TransformerXL, attention

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


@pytest.mark.parametrize("backend", ["strided", "explicit"])
def test_the_backends_agree_on_what_scores_are(backend):
    """Scores of this size, rounded to 16 bits, would be off by a fourth."""
    query, key, value = (x.double() for x in content())
    scores = 50 * torch.tanh(query @ key.mT * WIDTH**-0.5 / 50)
    hidden = torch.ones(LENGTH, LENGTH).triu(1).bool()
    want = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value
    got = inside(lambda: attention(*content(), is_causal=True, softcap=50.0, backend=backend))
    torch.testing.assert_close(got.double(), want, rtol=0, atol=1e-4)


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


def test_scores_by_distance_in_a_graph():
    """There Transformer-XL multiplies each pair by itself."""
    encoding = TransformerXL(HEADS, WIDTH, std=1.0)
    query, key, _ = (x[:, :, :5] for x in content())
    given = torch.zeros(1, HEADS, 5, 5), torch.arange(5), torch.arange(5)

    def call(scores, here, there):
        return encoding(scores, here, there, q=query, k=key)

    made = inside(lambda: make_fx(call)(*given))
    torch.testing.assert_close(made(*given), call(*given))


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


def test_float64_is_left_by_autocast_and_refused_beside_others():
    query, key, value = content()
    with pytest.raises(TypeError, match="float64"):
        inside(lambda: attention(query, key, value.double()))
