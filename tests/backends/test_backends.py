"""Every way to compute attention means the same, forward and backward."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import posenc.backends.strided.blocks as blocks
import posenc.backends.strided.gradients as gradients
from posenc import (
    KERPLE,
    ALiBi,
    Positional,
    RelativeBias,
    Rotary,
    Sandwich,
    T5Bias,
    attention,
    explain_attention,
    positions,
)
from posenc.backends.masks import added, hides, masked_softmax

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 2, 6, 3, 40, 8


class LearnedDistances(RelativeBias):
    """A free number for each head and distance, clipped: the least that learns."""

    def __init__(self, heads: int, reach: int):
        super().__init__()
        self.heads, self.reach = heads, reach
        self.weight = nn.Parameter(torch.randn(heads, 2 * reach + 1, dtype=torch.float64))

    def profile(self, distance, *, dtype=None):
        clipped = distance.clamp(-self.reach, self.reach) + self.reach
        return self.weight[:, clipped].to(dtype or torch.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks so small that short sequences have several."""
    monkeypatch.setattr(blocks, "ROWS", 16)
    monkeypatch.setattr(blocks, "MANY_ROWS", 32)
    monkeypatch.setattr(blocks, "FAR", 24)
    monkeypatch.setattr(gradients, "ELEMENTS", 500)
    torch.manual_seed(0)


def content(q_len=SEQ, k_len=SEQ, dtype=torch.float64):
    shapes = [(HEADS, q_len, WIDTH), (KV_HEADS, k_len, WIDTH), (KV_HEADS, k_len, WIDTH)]
    return [torch.randn(BATCH, *shape, dtype=dtype, requires_grad=True) for shape in shapes]


PADDING = torch.ones(BATCH, SEQ, dtype=torch.bool)
PADDING[0, :5] = False
PADDING[1, -7:] = False
DOCUMENTS = torch.tensor([[0] * 10 + [1] * 30, [0] * 25 + [1] * 15])

BIASES = {
    "fixed": ALiBi(HEADS),
    "learned": LearnedDistances(HEADS, 9),
    "t5": T5Bias(HEADS, 8, 20, std=1.0).double(),
    "frozen": T5Bias(HEADS, 8, 20, std=1.0).double().requires_grad_(False),
    "steep": ALiBi(HEADS, slopes=(8.0, 4.0, 1.0, 0.1, 0.01, 0.001)),
    "kerple": KERPLE(HEADS).double(),
    "power": KERPLE(HEADS, "power").double(),
    "sandwich": Sandwich(HEADS, dim=16),
    "some-heads": T5Bias(2 * HEADS, 8, 20, std=1.0).double()[3 : 3 + HEADS],
}

MASKS = [
    dict(zip(("is_causal", "window", "padding_mask", "document_ids"), values, strict=True))
    for values in itertools.product((False, True), (None, 7), (None, PADDING), (None, DOCUMENTS))
]


def named(masks):
    return "-".join(k for k, v in masks.items() if v is not None and v is not False) or "all"


@pytest.mark.parametrize("masks", MASKS, ids=named)
@pytest.mark.parametrize("bias", BIASES.values(), ids=BIASES)
def test_strided_and_dense_equal_explicit_forward_and_backward(bias, masks):
    qkv = content()
    real = PADDING if masks["padding_mask"] is not None else torch.ones_like(PADDING)
    positional = Positional(queries_keys=Rotary(WIDTH), scores=bias)
    weights = torch.randn(BATCH, HEADS, SEQ, WIDTH, dtype=torch.float64) * real[:, None, :, None]
    results = {}
    for backend in ("explicit", "dense", "strided"):
        made = attention(*qkv, positional=positional, backend=backend, **masks)
        wanted = [*qkv, *(p for p in bias.parameters() if p.requires_grad)]
        grads = torch.autograd.grad((made * weights).sum(), wanted)
        results[backend] = [made * real[:, None, :, None], *grads]
    for backend in ("dense", "strided"):
        for got, meant in zip(results[backend], results["explicit"], strict=True):
            torch.testing.assert_close(got, meant, rtol=0, atol=1e-12)


def torch_attends(*content) -> bool:
    """Whether torch's own attention runs: told to do without AVX-512, it may fail in float16."""
    try:
        scaled_dot_product_attention(*content, enable_gqa=True)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_narrow_content_meets_a_bias_in_float32(dtype):
    q, k, v = (t.detach().to(dtype) for t in content(dtype=torch.float32))
    if not torch_attends(q, k, v):
        pytest.skip(f"torch's own attention fails in {dtype} on this processor as it is set")
    positional = Positional(scores=ALiBi(HEADS))
    given, wide = {"positional": positional, "is_causal": True}, (t.double() for t in (q, k, v))
    meant = attention(*wide, **given, backend="explicit")
    for backend in ("strided", "dense", "explicit"):
        got = attention(q, k, v, **given, backend=backend)
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), meant, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_positions_decide_and_not_rows():
    q, k, v = (t.detach() for t in content())
    positional = Positional(queries_keys=Rotary(WIDTH), scores=ALiBi(HEADS))
    whole = attention(q, k, v, positional=positional, is_causal=True)
    far = positions.consecutive(SEQ, start=2**40)
    got = attention(
        q, k, v, positional=positional, q_positions=far, k_positions=far, is_causal=True
    )
    torch.testing.assert_close(got, whole, rtol=0, atol=1e-12)
    for rank in range(2):  # a rank of a ring sees all keys, and its own queries out of order
        held = positions.shard(SEQ, rank, 2, layout="zigzag")
        for backend in ("strided", "dense"):
            given = {"q_positions": held, "k_positions": range(SEQ), "backend": backend}
            got = attention(q[:, :, held], k, v, positional=positional, is_causal=True, **given)
            torch.testing.assert_close(got, whole[:, :, held], rtol=0, atol=1e-12)


def test_a_decoded_row_is_the_last_row():
    q, k, v = (t.detach() for t in content())
    positional = Positional(queries_keys=Rotary(WIDTH), scores=ALiBi(HEADS))
    whole = attention(q, k, v, positional=positional, is_causal=True, backend="strided")
    row = attention(q[:, :, -1:], k, v, positional=positional, is_causal=True)
    torch.testing.assert_close(row, whole[:, :, -1:], rtol=0, atol=1e-12)
    rotary = positional.queries_keys[0]
    kept = rotary.encode_keys(k, rotary.table(torch.arange(SEQ), dtype=torch.float64))
    row = attention(q[:, :, -1:], kept, v, positional=positional, is_causal=True, keys_encoded=True)
    torch.testing.assert_close(row, whole[:, :, -1:], rtol=0, atol=1e-12)


@pytest.mark.slow("thousands of queries and keys, in float64 too")
def test_the_cut_off_of_alibi_changes_no_result_beyond_rounding():
    """Also where the far keys have by far the largest products."""
    seq = 3000
    q, k, v = (torch.randn(1, 4, seq, 16) for _ in range(3))
    k[:, :, :5] *= 20
    positional = Positional(scores=ALiBi(4))
    for causal in (False, True):
        given, wide = (
            {"positional": positional, "is_causal": causal},
            (t.double() for t in (q, k, v)),
        )
        exact = attention(*wide, **given, backend="explicit")
        dense, cut = (attention(q, k, v, **given, backend=b) for b in ("dense", "strided"))
        worst = (dense - exact).abs().max()
        assert (cut - exact).abs().max() <= 1.5 * worst + 1e-7


@pytest.mark.parametrize("sunk", [False, True])
@pytest.mark.parametrize("large", [1.0, 1e9, 1e15])
def test_the_cut_off_leaves_far_keys_whose_values_outweigh_the_near_ones(large, sunk):
    q, k, v = (torch.randn(2, 4, 300, 8) for _ in range(3))
    q, v[:, :, 5] = q * 0.01, large
    given = {"positional": Positional(scores=ALiBi(4)), "is_causal": True}
    sinks = torch.zeros(4) if sunk else None
    got = attention(q, k, v, **given, sinks=sinks, backend="strided")
    wide = None if sinks is None else sinks.double()
    want = attention(q.double(), k.double(), v.double(), **given, sinks=wide, backend="explicit")
    lengths = want.norm(dim=-1)
    assert ((got - want).norm(dim=-1) / lengths).max() < 1e-5


def test_the_cut_off_spares_work():
    from posenc.backends.strided.toeplitz import toeplitz

    bias = toeplitz([ALiBi(8)], 4096, 4096, 0, is_causal=True)
    assert bias.falls_far(4096)
    seen = (
        bias.cut_off(torch.full((8,), 5.0), torch.zeros(8), 4096).values.isfinite().sum(1).tolist()
    )
    assert seen == sorted(seen)
    assert seen[0] < 100  # slope 1/2: forty or so nats are spent within a hundred tokens
    assert seen[-1] == 4096  # slope 1/256 loses 16 nats over all of them


def test_backends_are_chosen_and_explained():
    x = torch.randn(1, 8, 256, 8)
    cases = {
        "sdpa: order alone": (Positional(queries_keys=Rotary(8)), {"is_causal": True}),
        "sdpa: nothing": (None, {}),
        "strided: positions run on": (Positional(scores=ALiBi(8)), {"is_causal": True}),
        "dense: a mask of": (Positional(scores=ALiBi(8)), {"attn_mask": torch.ones(256, 256) > 0}),
    }
    for expected, (positional, masks) in cases.items():
        assert explain_attention(x, x, x, positional=positional, **masks).startswith(expected)
    short = x[:, :, :16]
    said = explain_attention(short, short, short, positional=Positional(scores=ALiBi(8)))
    assert said.startswith("dense")
    assert "not strided: there are few pairs" in said


@pytest.mark.compiles
def test_a_graph_is_strided_for_all_lengths():
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    positional = Positional(scores=ALiBi(4))

    @torch.compile(backend=counter, dynamic=True, fullgraph=True)
    def compiled(x):
        return attention(x, x, x, positional=positional, is_causal=True)

    for seq in (200, 300, 700):
        x = torch.randn(1, 4, seq, 8)
        torch.testing.assert_close(
            compiled(x), attention(x, x, x, positional=positional, is_causal=True)
        )
    assert counter.frame_count == 1


@pytest.mark.parametrize("bias", [T5Bias, KERPLE, ALiBi])
def test_a_layer_that_is_run_again_drops_the_same_weights(bias):
    """Activation checkpointing runs it first without gradients, and takes them of a second run."""
    from torch.utils.checkpoint import checkpoint

    positional, x = Positional(scores=bias(2)), torch.randn(1, 2, 200, 8).requires_grad_()

    def layer(x):
        return attention(x, x, x, positional=positional, is_causal=True, dropout_p=0.2)

    def again(x):
        return checkpoint(layer, x, use_reentrant=True)

    made = []
    for run in (layer, again):
        torch.manual_seed(0)
        x.grad, out = None, run(x)
        out.square().sum().backward()
        made.append((out.detach(), x.grad))
    torch.testing.assert_close(*made)


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("masks", MASKS, ids=named)
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_equals_explicit(masks):
    q, k, v = (t.detach() for t in content())
    positional = Positional(scores=(ALiBi(HEADS), LearnedDistances(HEADS, 5).requires_grad_(False)))
    real = (PADDING if masks["padding_mask"] is not None else torch.ones_like(PADDING))[
        :, None, :, None
    ]
    meant = attention(q, k, v, positional=positional, backend="explicit", **masks)
    got = attention(q, k, v, positional=positional, backend="flex", **masks)
    torch.testing.assert_close(got * real, meant * real, rtol=0, atol=1e-12)


def test_masks_by_hand():
    distance = torch.tensor([-3, -2, 0, 2, 3])
    assert hides(distance, is_causal=False, window=3).tolist() == [True, *[False] * 3, True]
    assert hides(distance, is_causal=True, window=3).tolist() == [True, True, False, False, True]
    assert added(torch.ones(2), torch.tensor([0.5, -torch.inf])).tolist() == [1.5, -torch.inf]
    scores, weights = masked_softmax(torch.zeros(1, 1, 1, 3), torch.tensor([0.0, 0.0, -torch.inf]))
    assert scores.flatten().tolist() == [0, 0, -torch.inf]
    assert weights.flatten().tolist() == [0.5, 0.5, 0]
    scores, weights = masked_softmax(torch.ones(1, 1, 1, 2), torch.tensor([-torch.inf] * 2))
    assert not weights.any()
