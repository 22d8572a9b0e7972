"""What attention takes, against torch, transformers and the definition; what it refuses."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from posenc import ALiBi, Positional, attention
from posenc.backends.choice import BACKENDS
from posenc.testing.reference import reference_attention
from posenc.transformer import Encoder

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 2, 4, 2, 24, 8
BIASED = Positional(scores=ALiBi(HEADS))
AT_ENDS = torch.ones(BATCH, SEQ, dtype=torch.bool)
AT_ENDS[0, :5] = AT_ENDS[1, -4:] = False

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def content(q_len=SEQ, k_len=SEQ):
    generator = torch.Generator().manual_seed(0)
    shapes = (HEADS, q_len), (KV_HEADS, k_len), (KV_HEADS, k_len)
    return [
        torch.randn(BATCH, *shape, WIDTH, generator=generator, dtype=torch.float64)
        for shape in shapes
    ]


@pytest.mark.parametrize("model", ["gpt_oss", "gemma2"])
def test_sinks_and_soft_capping_are_those_of_transformers(model):
    eager = pytest.importorskip(f"transformers.models.{model}.modeling_{model}")
    query, key, value = content()
    module = torch.nn.Module()
    module.num_key_value_groups, module.training, module.head_dim = 2, False, WIDTH
    module.sinks = torch.randn(HEADS, dtype=torch.float64)
    ours = {"sinks": module.sinks} if model == "gpt_oss" else {"softcap": 0.5}
    theirs = {"scaling": WIDTH**-0.5} if model == "gpt_oss" else ours
    later = torch.full((SEQ, SEQ), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    want, _ = eager.eager_attention_forward(module, query, key, value, later, **theirs)
    got = attention(query, key, value, is_causal=True, **ours)
    # Gemma's softmax is float32, whatever its content.
    near = 1e-12 if model == "gpt_oss" else 1e-6
    torch.testing.assert_close(got, want.transpose(1, 2), rtol=0, atol=near)


@pytest.mark.parametrize("backend", [None, "strided", "dense", "explicit", "flex"])
@pytest.mark.parametrize("q_len", [7, SEQ])
@pytest.mark.parametrize("placed", [False, True])
def test_queries_of_another_sequence_are_no_padding(backend, q_len, placed):
    query, key, value = content(q_len)
    at, to = torch.arange(q_len), torch.arange(SEQ)
    given, bias = {"padding_mask": AT_ENDS}, 0.0
    if placed:
        given |= {"q_positions": at, "k_positions": to, "positional": BIASED}
        bias = BIASED.scores[0].profile(at[:, None] - to, dtype=torch.float64)
    out = attention(query, key, value, backend=backend, **given)
    key, value = (x.repeat_interleave(HEADS // KV_HEADS, dim=1) for x in (key, value))
    scores = query @ key.mT / WIDTH**0.5 + bias
    weights = scores.masked_fill(~AT_ENDS[:, None, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(out, weights @ value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["strided", "dense", "explicit", None])
@pytest.mark.parametrize("lengths", [(0, SEQ), (SEQ, 0), (0, 0)])
def test_where_nobody_meets_there_is_nothing(backend, lengths):
    parts, given = [t.requires_grad_() for t in content(*lengths)], {}
    if lengths == (SEQ, 0):
        given = {"q_positions": torch.arange(SEQ), "k_positions": torch.arange(0)}
    out = attention(*parts, positional=BIASED, backend=backend, **given)
    assert out.shape == (BATCH, HEADS, lengths[0], WIDTH)
    assert not out.any()
    out.sum().backward()


SHAPES = [
    *itertools.product((1, BATCH), (1, HEADS), (1, SEQ), (1, SEQ)),
    *((SEQ,), (1,), (SEQ, SEQ), (1, SEQ), (HEADS, 1, SEQ)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.float64])
def test_every_mask_that_broadcasts_is_taken(shape, dtype):
    qkv, here = content(), torch.arange(SEQ)
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mask = drawn > 0.3 if dtype == torch.bool else drawn.to(dtype)
    added = torch.where(mask, 0.0, -torch.inf) if dtype == torch.bool else mask
    want = reference_attention(
        *qkv, positional=BIASED, q_positions=here, k_positions=here,
        added=added.expand(BATCH, HEADS, SEQ, SEQ),
    )  # fmt: skip
    for backend in ("dense", "explicit"):
        got = attention(*qkv, mask, positional=BIASED, backend=backend)
        torch.testing.assert_close(got, want.nan_to_num(0.0), rtol=0, atol=1e-12)


def test_a_mask_and_order_hide_together():
    query, key, value = content()
    seen = torch.rand(SEQ, SEQ, generator=torch.Generator().manual_seed(0)) > 0.5
    got = attention(query, key, value, seen, is_causal=True)
    want = attention(query, key, value, seen & torch.ones(SEQ, SEQ, dtype=torch.bool).tril())
    assert torch.equal(got, want)


@pytest.mark.parametrize("q_len", [1, 5, SEQ])
def test_it_is_torchs_attention_where_torch_has_one(q_len):
    qkv, bias = content(q_len), torch.randn(q_len, SEQ, dtype=torch.float64)
    for arguments in ((), (bias,), (bias > 0,), (None, 0.0, q_len == SEQ)):
        want = F.scaled_dot_product_attention(*qkv, *arguments, scale=0.3, enable_gqa=True)
        got = attention(*qkv, *arguments, scale=0.3, enable_gqa=True)
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["sdpa", "dense", "explicit", "strided"])
def test_dropout_is_that_of_weights(backend):
    query, key, value = content()
    torch.manual_seed(0)
    made = attention(query, key, torch.ones_like(value), dropout_p=0.5, backend=backend)
    assert abs(made.mean() - 1) < 0.1
    assert made.std() > 0.05


@pytest.mark.parametrize("here", [range(SEQ), list(range(SEQ)), torch.arange(SEQ).int()], ids=type)
def test_positions_may_be_lists_and_ranges(here):
    qkv, given = content(), {"positional": BIASED, "is_causal": True}
    got = attention(*qkv, **given, q_positions=here, k_positions=here)
    torch.testing.assert_close(got, attention(*qkv, **given), rtol=0, atol=1e-12)


X = torch.randn(1, 2, 4, 8)
REFUSED = [
    ({"attn_mask": torch.ones(4, 4, dtype=torch.int64)}, TypeError, "attn_mask"),
    ({"q_positions": torch.arange(4)}, ValueError, "one side"),
    ({"q_positions": torch.zeros(4), "k_positions": torch.arange(4)}, TypeError, "q_positions"),
    ({"positional": Positional(scores=ALiBi(1))}, ValueError, "heads"),
    ({"positional": ALiBi(2)}, TypeError, "positional is ALiBi"),
    ({"backend": "fast"}, ValueError, "backend"),
    ({"backend": "sdpa", "softcap": 1.0}, ValueError, "cannot serve"),
    ({"key": X[:, :, :3]}, ValueError, "shapes"),
    ({"key": X.double()}, TypeError, "float64"),
]


@pytest.mark.parametrize(("change", "error", "word"), REFUSED)
def test_what_would_broadcast_or_be_misread_is_refused(change, error, word):
    with pytest.raises(error, match=word):
        attention(**{"query": X, "key": X, "value": X} | change)


def test_inside_context_parallel_all_attention_refuses(monkeypatch):
    """torch's context_parallel puts a function of its own in the place of SDPA."""
    kept = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **k: kept(*a, **k))
    for call in (lambda: attention(X, X, X), lambda: Encoder(8, 2, 1)(torch.randn(1, 3, 8))):
        with pytest.raises(RuntimeError, match="context_parallel"):
            call()


def test_flex_on_a_cpu_refuses_gradients_and_takes_one_tensor_for_all_three():
    x = torch.randn(1, 2, 5, 8, requires_grad=True)
    with pytest.raises(ValueError, match="no backward pass"):
        attention(x, x, x, backend="flex")
    with torch.no_grad():
        for given in ({"padding_mask": torch.arange(5)[None] > 0}, {}, {"is_causal": True}):
            made, wanted = (attention(x, x, x, backend=b, **given) for b in ("flex", "dense"))
            torch.testing.assert_close(made, wanted, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("where", ["keys", "queries"])
def test_nan_in_padding_reaches_nobody_forward_or_backward(backend, where):
    query, key, value = content()
    positional = Positional() if backend == "sdpa" else Positional(scores=ALiBi(HEADS))
    given = {"positional": positional, "padding_mask": AT_ENDS}
    if backend == "sdpa":
        with pytest.raises(ValueError, match="cannot serve"):
            attention(query, key, value, backend=backend, **given)
        return
    clean = [t.clone().requires_grad_() for t in (query, key, value)]
    spoiled = [t.clone().requires_grad_() for t in (query, key, value)]
    for t in spoiled[1:] if where == "keys" else spoiled[:1]:
        t.data[~AT_ENDS[:, None].expand(-1, t.shape[1], -1)] = torch.nan
    real, grads = AT_ENDS[:, None, :, None], []
    for parts in (clean, spoiled):
        with torch.set_grad_enabled(backend != "flex"):  # which has no backward pass on a CPU
            out = attention(*parts, backend=backend, **given).masked_fill(~real, 0)
        learned = [] if backend == "flex" else torch.autograd.grad(out.sum(), parts)
        grads.append([out, *learned])
    for got, want in zip(grads[1], grads[0], strict=True):
        shown = real.expand_as(got)
        torch.testing.assert_close(got[shown], want[shown], rtol=0, atol=1e-12)
