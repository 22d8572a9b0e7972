"""Sinks and soft capping without the matrix of queries × keys, forward and backward."""

import pytest
import torch

import posenc.backends.strided.blocks as blocks
import posenc.backends.strided.gradients as gradients
from posenc import ALiBi, Positional, Rotary, T5Bias, attention
from posenc.testing.reference import reference_attention

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 2, 4, 2, 40, 8
BIASES = {
    "none": None,
    "fixed": ALiBi(HEADS),
    "learned": T5Bias(HEADS, 8, 20, std=1.0).double(),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks so small that short sequences have several."""
    monkeypatch.setattr(blocks, "ROWS", 16)
    monkeypatch.setattr(blocks, "MANY_ROWS", 32)
    monkeypatch.setattr(blocks, "FAR", 24)
    monkeypatch.setattr(gradients, "ELEMENTS", 500)
    torch.manual_seed(0)


def content(value_dim=WIDTH, seq=SEQ, dtype=torch.float64):
    shapes = [(HEADS, WIDTH), (KV_HEADS, WIDTH), (KV_HEADS, value_dim)]
    return [torch.randn(BATCH, h, seq, w, dtype=dtype, requires_grad=True) for h, w in shapes]


def some_sinks():
    return torch.tensor([-1.0, 0.0, 1.0, 4.0], dtype=torch.float64, requires_grad=True)


def agree(bias, is_causal, window, softcap, sunk, value_dim):
    """Hold results and all gradients of the strided backend against the definition."""
    q, k, v = content(value_dim)
    sinks = some_sinks() if sunk else None
    positional = Positional(queries_keys=Rotary(WIDTH), scores=() if bias is None else bias)
    here = torch.arange(SEQ)

    def visible(row, i, j):
        return not (is_causal and j > i) and (window is None or abs(i - j) < window)

    given = {"positional": positional, "sinks": sinks, "softcap": softcap}
    want = reference_attention(
        q, k, v, q_positions=here, k_positions=here, visible=visible, **given
    )
    got = attention(q, k, v, is_causal=is_causal, window=window, backend="strided", **given)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    learning = [q, k, v, *(() if sinks is None else [sinks]), *positional.parameters()]
    weights = torch.randn_like(want)
    made, meant = (torch.autograd.grad((x * weights).sum(), learning) for x in (got, want))
    for one, other in zip(made, meant, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("bias", "is_causal", "window", "softcap", "sunk", "value_dim"),
    [
        ("none", True, 7, None, True, WIDTH),  # gpt-oss
        ("none", True, 7, 1.5, False, WIDTH),  # Gemma 2
        ("fixed", False, None, None, True, 5),
        ("learned", True, None, 1.5, True, WIDTH),
        ("learned", False, 7, None, True, WIDTH),
    ],
)
def test_results_and_gradients_are_those_of_the_definition(
    bias, is_causal, window, softcap, sunk, value_dim
):
    agree(BIASES[bias], is_causal, window, softcap, sunk, value_dim)


def test_a_sink_worked_by_hand():
    """One query, two keys with scores 0, a sink of log 2: weights 1/4, 1/4 and 1/2."""
    q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.tensor([[[[8.0, 0], [0, 4]]]])
    sinks = torch.tensor([2.0]).log()
    got = attention(q, k, v, sinks=sinks, backend="strided")
    torch.testing.assert_close(got, torch.tensor([[[[2.0, 1.0]]]]))


def test_a_row_that_sees_nothing_gives_nothing_and_learns_nothing():
    """All weight is its sink's, or no one's where that is −∞ too."""
    q, k, v = content()
    real = torch.ones(BATCH, SEQ, dtype=torch.bool)
    real[0] = False
    for sinks in (some_sinks(), torch.full((HEADS,), -torch.inf, dtype=torch.float64)):
        sinks = sinks.detach().requires_grad_()
        out = attention(q, k, v, sinks=sinks, padding_mask=real, q_padding_mask=real | True,
                        backend="strided")  # fmt: skip
        assert not out[0].any()
        for grad in torch.autograd.grad(out[0].sum(), (q, k, v, sinks)):
            assert not grad.any()


@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_beside_content_of_16_bits_sinks_learn_in_float32(dtype, softcap):
    narrow, sinks = content(dtype=dtype), some_sinks().detach()

    def learned(backend, to, own):
        own = own.requires_grad_()
        out = attention(*(x.to(to) for x in narrow), sinks=own, softcap=softcap, backend=backend)
        return torch.autograd.grad(out.double().sin().sum(), own)[0]

    got = learned("strided", dtype, sinks.float())
    want = learned("explicit", torch.float64, sinks.double())
    torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-3)


def test_far_keys_of_a_steep_bias_cost_nothing_and_change_nothing(monkeypatch):
    """Slope 4: past some ten tokens a key cannot reach the last bit, with or without a sink."""
    steep = ALiBi(HEADS, slopes=[4.0] * HEADS)
    q, k, v = (t.detach() / 4 for t in content())
    seen = []
    from posenc.backends.strided import parts

    flash = parts.flash
    monkeypatch.setattr(
        parts, "flash", lambda *some, **named: seen.append(some[1]) or flash(*some, **named)
    )
    given = {
        "sinks": some_sinks().detach(),
        "is_causal": True,
        "positional": Positional(scores=steep),
    }
    got = attention(q, k, v, backend="strided", **given)
    want = attention(q, k, v, backend="explicit", **given)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-15)
    assert max(keys.shape[-2] for keys in seen) < SEQ


def test_transforms_and_devices_without_numbers_take_another_backend():
    q, k, v = (t.detach() for t in content(seq=200, dtype=torch.float32))
    sinks = torch.zeros(HEADS)
    want = attention(q, k, v, sinks=sinks)
    got = torch.vmap(lambda q: attention(q, k, v, sinks=sinks))(q[None])[0]
    torch.testing.assert_close(got, want, rtol=0, atol=2e-6)
    grad = torch.func.grad(lambda s: attention(q, k, v, sinks=s).sum())(sinks)
    assert grad.shape == sinks.shape
    meta = [t.to("meta") for t in (q, k, v, sinks)]
    assert attention(*meta[:3], sinks=meta[3], is_causal=True).is_meta


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("backend", ["explicit", "dense", "strided", "flex"])
def test_an_infinite_sink_takes_all_of_its_head(backend, dtype):
    q, k, v = (x.detach().to(dtype) for x in content())
    sinks = torch.tensor([torch.inf, 0.0, -torch.inf, 1.0])
    with torch.no_grad():
        got = attention(q, k, v, sinks=sinks, backend=backend)
        beside = attention(q, k, v, sinks=sinks.clamp(max=2.0), backend=backend)
    assert not got[:, 0].any()
    assert torch.equal(got[:, 1:], beside[:, 1:])
