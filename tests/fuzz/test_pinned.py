"""What hunts have found, kept: each was wrong once."""

import pytest
import torch
from tests.fuzz import attention as hunter
from tests.fuzz.calls import AttentionCase

from posenc import (
    ALiBi,
    CoPE,
    Forgetting,
    Positional,
    Rotary,
    XPos,
    attention,
)
from posenc.backends.choice import BACKENDS
from posenc.testing.reference import reference_attention

HERE = torch.arange(5)


@pytest.mark.parametrize("backend", ["flex", "dense", "explicit"])
def test_a_window_at_the_ends_of_int64_is_a_window(backend):
    x = torch.randn(1, 1, 3, 8, dtype=torch.float64)
    ends = torch.tensor([-(2**63), 0, 2**63 - 1])
    got = attention(x, x, x, window=2, q_positions=ends, k_positions=ends, backend=backend)
    torch.testing.assert_close(got, x, rtol=0, atol=1e-12)  # each sees itself alone


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "sdpa"])
def test_order_and_a_window_hide_together_without_positions(backend):
    x = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    want = reference_attention(
        x, x, x, q_positions=HERE, k_positions=HERE, visible=lambda _, q, k: 0 <= q - k < 2
    )
    got = attention(x, x, x, is_causal=True, window=2, backend=backend)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoding", [CoPE(2, 8, 4, std=1.0), Forgetting(2, 8, std=1.0)], ids=str)
@pytest.mark.parametrize("placed", [False, True])
def test_padding_between_tokens_counts_for_nothing(encoding, placed):
    """Whatever position padding is given, encodings that count tokens leave it out."""
    positional = Positional(scores=encoding.double())
    x = torch.randn(1, 2, 5, 8, dtype=torch.float64)
    real = torch.tensor([[True, True, False, False, True]])
    kept = real[0].nonzero().flatten()
    given = {"q_positions": HERE, "k_positions": HERE} if placed else {}
    got = attention(x, x, x, positional=positional, padding_mask=real, **given)[:, :, kept]
    alone = x[:, :, kept]
    want = attention(alone, alone, alone, positional=positional,
                     q_positions=HERE[kept], k_positions=HERE[kept])  # fmt: skip
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_nothing_but_padding_learns_nothing_on_every_backend():
    parts = [torch.randn(1, 1, 5, 8, requires_grad=True) for _ in range(3)]
    nothing = torch.zeros(1, 5, dtype=torch.bool)
    for backend in ("strided", "dense", "explicit"):
        out = attention(
            *parts, positional=Positional(scores=ALiBi(1)), padding_mask=nothing, backend=backend
        )
        assert not torch.autograd.grad(out.sum(), parts)[0].any()


def test_padding_too_far_away_is_left_out():
    """The token that is real has a distance to itself alone."""
    positional = Positional(scores=CoPE(1, 8, 4, std=1.0).double())
    x, places = torch.randn(1, 1, 2, 8, dtype=torch.float64), torch.tensor([-(2**63), 0])
    q, real = x[:, :, :1], torch.tensor([[True, False]])
    given = {"q_positions": places[:1], "k_positions": places}
    masks = {"padding_mask": real, "q_padding_mask": real[:, :1]}
    got = attention(q, x, x, positional=positional, **given, **masks)
    torch.testing.assert_close(got, q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["strided", "dense", "explicit"])
@pytest.mark.parametrize("positional", [Positional(), Positional(scores=ALiBi(1))], ids=str)
def test_a_window_with_nothing_but_padding_in_it_learns_nothing(backend, positional):
    q, k, v = (torch.randn(1, 1, n, 8, requires_grad=True) for n in (1, 2, 2))
    places = {"q_positions": torch.tensor([0]), "k_positions": torch.tensor([0, 1])}
    hidden = {"window": 1, "padding_mask": torch.tensor([[False, True]])}
    out = attention(q, k, v, positional=positional, **places, **hidden, backend=backend)
    assert not out.any()
    assert not any(each.any() for each in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_content_whose_channels_lie_apart_in_memory(dtype):
    """torch's operation for the CPU reads channels side by side, wherever they lie."""
    content = [torch.randn(1, 2, 9, 8, dtype=dtype) for _ in range(3)]
    apart = [x.mT.contiguous().mT.requires_grad_() for x in content]
    content = [x.requires_grad_() for x in content]
    sinks, weight = torch.randn(2, dtype=dtype), torch.randn(1, 2, 9, 8, dtype=dtype)
    out, want = (attention(*given, sinks=sinks, backend="strided") for given in (apart, content))
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(
        torch.autograd.grad(out, apart, weight.mT.contiguous().mT),
        torch.autograd.grad(want, content, weight),
    )


@pytest.mark.parametrize("scale", [0.0, -0.7])
def test_order_hides_keys_at_any_scale(scale):
    q, k, v = torch.randn(3, 1, 2, 6, 4, dtype=torch.float64)
    scores = scale * q @ k.mT
    weights = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf).softmax(-1)
    for backend in (None, "sdpa", "strided", "dense", "explicit"):
        out = attention(q, k, v, is_causal=True, scale=scale, backend=backend)
        torch.testing.assert_close(out, weights @ v)


def test_large_terms():
    """A key 1,006 tokens after its query has 3.6·10⁸ times its size there, and takes all weight:
    gradients are held to the rounding of terms that an XPos made large."""
    case = AttentionCase(
        7, value_dim=8, relation="some", chosen=[0, 0], positions=[0, 1, 2, 3, 4, 5, 1006],
        builders=[lambda: XPos(Rotary(8), scale_base=64.0)],
    )  # fmt: skip
    hunter.check(case)


@pytest.mark.parametrize("fallen", [-(2**63), -(2**63) + 1])
@pytest.mark.parametrize("backend", [None, "dense", "flex", "explicit"])
def test_positions_that_fall_by_more_than_int64_holds_are_out_of_order(backend, fallen):
    """Their difference wraps to a positive number, as if they rose."""
    q, k, v = torch.randn(3, 1, 1, 2, 8, dtype=torch.float64)
    places = torch.tensor([3, fallen])
    hidden = places[:, None] < places[None, :]
    want = (q @ k.mT * 8**-0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v
    got = attention(
        q, k, v, is_causal=True, q_positions=places, k_positions=places, backend=backend
    )
    torch.testing.assert_close(got, want)
