"""What attention takes and what it refuses; queries that are some of the tokens."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from posenc import (
    ALiBi,
    Positional,
    Rotary,
    Shaw,
    T5Bias,
    attention,
    positions,
)
from posenc.backends.choice import BACKENDS
from posenc.testing.reference import documents_of, reference_attention
from posenc.transformer import Encoder

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 2, 4, 2, 24, 8
NAMES = list(BACKENDS)


def content(q_len=SEQ, k_len=SEQ, dtype=torch.float64, value_dim=WIDTH):
    generator = torch.Generator().manual_seed(0)
    shapes = [(HEADS, q_len, WIDTH), (KV_HEADS, k_len, WIDTH), (KV_HEADS, k_len, value_dim)]
    return [
        torch.randn(BATCH, *s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes
    ]


PADDING = torch.ones(BATCH, SEQ, dtype=torch.bool)
PADDING[0, :5] = False
PADDING[1, 3:6] = False
AT_ENDS = torch.ones_like(PADDING)
AT_ENDS[0, :5] = AT_ENDS[1, -4:] = False
DOCUMENTS = torch.tensor([[3] * 10 + [1] * 14, [0] * 6 + [5] * 9 + [2] * 9])
SOME = torch.tensor([0, 3, 4, 11, 7, 20, 23])
CAPABLE = {
    "bias": ("strided", "dense", "explicit", "flex"),
    "content": ("explicit",),
}
POSITIONAL = {
    "alibi": (lambda: Positional(scores=ALiBi(HEADS)), "bias"),
    "rotary and t5": (
        lambda: Positional(queries_keys=Rotary(WIDTH), scores=T5Bias(HEADS, 8, 16, std=1.0)),
        "bias",
    ),
    "shaw": (lambda: Positional(scores=Shaw(HEADS, WIDTH, 4, values=True, std=1.0)), "content"),
}


def subset_arguments(masks, real, documents):
    """What says who the queries in ``SOME`` are."""
    every = (
        positions.packed(document_ids=documents)
        if documents is not None
        else (
            positions.left_padded(real) if real is not None else torch.arange(SEQ).expand(BATCH, -1)
        )
    )
    given = {"q_positions": every[:, SOME], "k_positions": every, **masks}
    if real is not None:
        given |= {"padding_mask": real, "q_padding_mask": real[:, SOME]}
    if documents is not None:
        given |= {"document_ids": documents, "q_document_ids": documents[:, SOME]}
    return given


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", POSITIONAL)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize(
    ("packed", "padding"),
    [
        (False, None),
        (True, "inside"),
        *(
            pytest.param(*each, marks=pytest.mark.slow("more kinds of masks"))
            for each in ((False, "at ends"), (False, "inside"), (True, None), (True, "at ends"))
        ),
    ],
)
def test_some_of_the_queries_get_what_they_get_among_all(name, is_causal, window, padding, packed):
    build, kind = POSITIONAL[name]
    torch.manual_seed(0)
    positional = build().double()
    real = {None: None, "inside": PADDING, "at ends": AT_ENDS}[padding]
    documents = DOCUMENTS if packed else None
    given = subset_arguments({"is_causal": is_causal, "window": window}, real, documents)
    query, key, value = content(len(SOME))
    ids = [documents_of(row.tolist()) for row in DOCUMENTS]

    def visible(row, q, k):
        at, to = int(given["q_positions"][row, q]), int(given["k_positions"][row, k])
        return (
            (not is_causal or to <= at)
            and (window is None or abs(at - to) < window)
            and (real is None or bool(real[row, k]))
            and (documents is None or ids[row][int(SOME[q])] == ids[row][k])
        )

    want = reference_attention(
        query, key, value, positional=positional, q_positions=given["q_positions"],
        k_positions=given["k_positions"], visible=visible,
    )  # fmt: skip
    shown = (torch.ones(BATCH, len(SOME), dtype=torch.bool) if real is None else real[:, SOME])[
        :, None, :, None
    ]
    for backend in CAPABLE[kind]:
        if backend == "strided" and padding == "inside" and not packed:
            with pytest.raises(ValueError, match="padding stands inside a document"):
                attention(query, key, value, positional=positional, backend=backend, **given)
            continue
        with torch.no_grad():
            got = attention(query, key, value, positional=positional, backend=backend, **given)
        torch.testing.assert_close(got * shown, want * shown, rtol=0, atol=1e-12, msg=backend)


def test_sinks_are_those_of_gpt_oss():
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

    query, key, value = content()
    module = torch.nn.Module()
    module.num_key_value_groups, module.training = HEADS // KV_HEADS, False
    module.sinks = torch.randn(HEADS, dtype=torch.float64)
    later = torch.full((SEQ, SEQ), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    want, _ = eager_attention_forward(module, query, key, value, later, scaling=WIDTH**-0.5)
    got = attention(query, key, value, is_causal=True, sinks=module.sinks)
    torch.testing.assert_close(got, want.transpose(1, 2), rtol=0, atol=1e-12)


def test_soft_capping_is_that_of_gemma_2():
    from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward

    query, key, value = content()
    module = torch.nn.Module()
    module.num_key_value_groups, module.training, module.head_dim = 2, False, WIDTH
    later = torch.full((SEQ, SEQ), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    want, _ = eager_attention_forward(module, query, key, value, later, softcap=0.5)
    got = attention(query, key, value, is_causal=True, softcap=0.5)
    # Its softmax is float32, whatever its content.
    torch.testing.assert_close(got, want.transpose(1, 2), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("backend", [None, "strided", "dense", "explicit", "flex"])
@pytest.mark.parametrize("q_len", [7, SEQ])
@pytest.mark.parametrize("placed", [False, True])
def test_queries_of_another_sequence_are_no_padding(backend, q_len, placed):
    query, key, value = content(q_len)
    at, to = torch.arange(q_len), torch.arange(SEQ)
    given, bias, alibi = {"padding_mask": AT_ENDS}, 0.0, ALiBi(HEADS)
    if placed:
        given |= {"q_positions": at, "k_positions": to, "positional": Positional(scores=alibi)}
        bias = alibi.profile(at[:, None] - to, dtype=torch.float64)
    out = attention(query, key, value, backend=backend, **given)
    groups = HEADS // KV_HEADS
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    scores = query @ key.mT / WIDTH**0.5 + bias
    weights = scores.masked_fill(~AT_ENDS[:, None, None], -torch.inf).softmax(-1)
    torch.testing.assert_close(out, weights @ value, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("backend", NAMES)
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


@pytest.mark.parametrize("backend", ["strided", "dense", "explicit", None])
def test_a_batch_of_padding_has_a_gradient_of_zeros(backend):
    parts = [t.requires_grad_() for t in content()]
    nothing = torch.zeros(BATCH, SEQ, dtype=torch.bool)
    out = attention(
        *parts, positional=Positional(scores=ALiBi(HEADS)), padding_mask=nothing, backend=backend
    )
    assert not out.any()
    for grad in torch.autograd.grad(out.sum(), parts):
        assert not grad.any()


@pytest.mark.parametrize("backend", ["strided", "dense", "explicit", None])
@pytest.mark.parametrize("lengths", [(0, SEQ), (SEQ, 0), (0, 0)])
def test_where_nobody_meets_there_is_nothing(backend, lengths):
    parts = [t.requires_grad_() for t in content(*lengths)]
    given = {"positional": Positional(scores=ALiBi(HEADS))}
    if lengths == (SEQ, 0):
        given |= {"q_positions": torch.arange(SEQ), "k_positions": torch.arange(0)}
    out = attention(*parts, backend=backend, **given)
    assert out.shape == (BATCH, HEADS, lengths[0], WIDTH)
    assert not out.any()
    out.sum().backward()


SHAPES = [
    *itertools.product((1, BATCH), (1, HEADS), (1, SEQ), (1, SEQ)),
    (SEQ,),
    (1,),
    (SEQ, SEQ),
    (1, SEQ),
    (HEADS, 1, SEQ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.bool, torch.bfloat16, torch.float32, torch.float64])
def test_every_mask_that_broadcasts_is_taken(shape, dtype):
    query, key, value = content()
    generator = torch.Generator().manual_seed(1)
    mask = torch.randn(shape, generator=generator, dtype=torch.float64)
    mask = mask > 0.3 if dtype == torch.bool else mask.to(dtype)
    here = torch.arange(SEQ)
    full = mask.expand(BATCH, HEADS, SEQ, SEQ)
    bool_mask = mask.dtype == torch.bool
    want = reference_attention(
        query, key, value, positional=Positional(scores=ALiBi(HEADS)), q_positions=here,
        k_positions=here,
        added=torch.where(full, 0.0, -torch.inf) if bool_mask else full,
    )  # fmt: skip
    for backend in ("dense", "explicit"):
        got = attention(
            query, key, value, mask, positional=Positional(scores=ALiBi(HEADS)), backend=backend
        )
        torch.testing.assert_close(got, want.nan_to_num(0.0), rtol=0, atol=1e-12)


def test_a_mask_and_order_hide_together():
    query, key, value = content()
    seen = torch.rand(SEQ, SEQ, generator=torch.Generator().manual_seed(0)) > 0.5
    got = attention(query, key, value, seen, is_causal=True)
    want = attention(query, key, value, seen & torch.ones(SEQ, SEQ, dtype=torch.bool).tril())
    assert torch.equal(got, want)


@pytest.mark.parametrize("q_len", [1, 5, SEQ])
def test_it_is_torchs_attention_where_torch_has_one(q_len):
    query, key, value = content(q_len)
    bias = torch.randn(q_len, SEQ, dtype=torch.float64)
    for arguments in ((), (bias,), (bias > 0,), (None, 0.0, q_len == SEQ)):
        want = F.scaled_dot_product_attention(
            query, key, value, *arguments, scale=0.3, enable_gqa=True
        )
        got = attention(query, key, value, *arguments, scale=0.3, enable_gqa=True)
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_dropout_is_that_of_weights():
    query, key, value = content()
    value = torch.ones_like(value)
    for backend in ("sdpa", "dense", "explicit", "strided"):
        torch.manual_seed(0)
        made = attention(query, key, value, dropout_p=0.5, backend=backend)
        assert abs(made.mean() - 1) < 0.1
        assert made.std() > 0.05


def test_positions_may_be_lists_and_ranges():
    query, key, value = content()
    positional = Positional(scores=ALiBi(HEADS))
    want = attention(query, key, value, positional=positional, is_causal=True)
    for here in (range(SEQ), list(range(SEQ)), torch.arange(SEQ, dtype=torch.int32)):
        got = attention(query, key, value, positional=positional, is_causal=True,
                        q_positions=here, k_positions=here)  # fmt: skip
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


X = torch.randn(1, 2, 4, 8)
REFUSED = [
    ({"attn_mask": torch.ones(4, 4, dtype=torch.int64)}, TypeError, "attn_mask"),
    ({"document_ids": torch.zeros(1, 4)}, TypeError, "document_ids"),
    ({"q_positions": torch.arange(4)}, ValueError, "one side"),
    ({"q_positions": torch.zeros(4), "k_positions": torch.arange(4)}, TypeError, "q_positions"),
    ({"q_positions": torch.arange(1), "k_positions": torch.arange(4)}, ValueError, "q_positions"),
    ({"positional": Positional(scores=ALiBi(1))}, ValueError, "heads"),
    ({"positional": ALiBi(2)}, TypeError, r"positional is ALiBi; pass Positional\(scores=\.\.\.\)"),
    ({"backend": "fast"}, ValueError, "backend"),
    ({"backend": "sdpa", "softcap": 1.0}, ValueError, "cannot serve"),
    ({"enable_gqa": False, "query": torch.randn(1, 4, 4, 8)}, ValueError, "shapes"),
    ({"key": X[:, :, :3]}, ValueError, "shapes"),
    ({"query": X[0]}, ValueError, "shapes"),
    ({"query": torch.randn(1, 3, 4, 8)}, ValueError, "shapes"),
    ({"key": X.double()}, TypeError, "float64"),
]


@pytest.mark.parametrize(("change", "error", "word"), REFUSED)
def test_what_would_broadcast_or_be_misread_is_refused(change, error, word):
    with pytest.raises(error, match=word):
        attention(**{"query": X, "key": X, "value": X} | change)


@pytest.fixture
def inside_context_parallel(monkeypatch):
    """torch's context_parallel puts a function of its own in the place of SDPA."""
    from torch.nn import functional

    kept = functional.scaled_dot_product_attention
    monkeypatch.setattr(functional, "scaled_dot_product_attention", lambda *a, **k: kept(*a, **k))


@pytest.mark.usefixtures("inside_context_parallel")
def test_inside_context_parallel_all_attention_refuses():
    for call in (lambda: attention(X, X, X), lambda: Encoder(8, 2, 1)(torch.randn(1, 3, 8))):
        with pytest.raises(RuntimeError, match="as torch's context_parallel does"):
            call()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_on_a_cpu_refuses_gradients_in_words_and_takes_one_tensor_for_two():
    """torch's words spoke of its own; and its guards failed where keys are the values."""
    x = torch.randn(1, 2, 5, 8, requires_grad=True)
    padding = torch.tensor([[False, True, True, True, True]])
    with pytest.raises(ValueError, match="'flex' cannot serve: on a CPU it has no backward pass"):
        attention(x, x, x, backend="flex")
    with torch.no_grad():
        for given in ({"padding_mask": padding}, {}, {"is_causal": True}):
            made = attention(x, x, x, backend="flex", **given)
            wanted = attention(x, x, x, backend="dense", **given)
            torch.testing.assert_close(made, wanted, rtol=0, atol=1e-6)
