"""Multi-head attention against torch's, with encodings, masks and fewer key heads."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from posenc import ALiBi, CoPE, Positional
from posenc.transformer import AttentionTables, MultiHeadAttention


def tables_for(positional: Positional, seq: int, dtype=torch.float64) -> AttentionTables:
    positions = torch.arange(seq)
    return AttentionTables(
        tuple((e, e.table(positions, dtype=dtype)) for e in positional.queries_keys),
        tuple((e, e.table(positions, positions, dtype=dtype)) for e in positional.scores),
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_torch_s_attention(causal, bias):
    ours = MultiHeadAttention(12, 3, bias=bias).double()
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double()
    for kind in ("weight", "bias") if bias else ("weight",):
        parts = [getattr(part, kind) for part in (ours.queries, ours.keys, ours.values)]
        getattr(theirs, f"in_proj_{kind}").data = torch.cat(parts).data
        getattr(theirs.out_proj, kind).data = getattr(ours.output, kind).data
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1) if causal else None
    want, weights = theirs(x, x, x, attn_mask=hidden, average_attn_weights=False)
    assert_close(ours(x, is_causal=causal), want, atol=1e-12, rtol=0)
    stages = ours.stages(x, is_causal=causal)
    assert_close(stages.output, want, atol=1e-12, rtol=0)
    assert_close(stages.weights, weights, atol=1e-12, rtol=0)


def masks(seq: int):
    """None at all, and two by which the third row sees nothing."""
    shown = torch.rand(2, 1, seq, seq) > 0.4
    shown[:, :, 2] = False
    added = torch.randn(2, 4, seq, seq, dtype=torch.float64).where(shown, -torch.inf)
    return {"none": None, "boolean": shown, "floating": added}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "boolean", "floating"])
def test_stages_are_what_forward_computes(positional, mask, causal):
    attention = MultiHeadAttention(16, 4, kv_heads=2, bias=False).double()
    x = torch.randn(2, 6, 16, dtype=torch.float64, requires_grad=True)
    given = {"tables": tables_for(positional.double(), 6), "attn_mask": masks(6)[mask]}
    out = attention(x, is_causal=causal, **given)
    stages = attention.stages(x, is_causal=causal, **given)
    assert_close(out, stages.output, atol=1e-12, rtol=0)
    assert mask == "none" or stages.output[:, 2].eq(0).all()
    for result in (out, stages.output):
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way, either
            (gradient,) = torch.autograd.grad(result.sum(), x, retain_graph=True)
        assert gradient.isfinite().all()


def test_scores_are_scaled_products_and_the_bias_is_added_to_them():
    attention = MultiHeadAttention(16, 4).double()
    x = torch.randn(1, 5, 16, dtype=torch.float64)
    tables = tables_for(Positional(scores=ALiBi(4)), 5)
    stages = attention.stages(x, tables=tables)
    assert_close(stages.scores, stages.queries @ stages.keys.mT / 2)  # head_dim 4
    assert_close(stages.encoded_scores - stages.scores, tables.scores[0][1].expand(1, 4, 5, 5))


def test_fewer_key_heads_are_key_heads_repeated():
    few, many = MultiHeadAttention(16, 4, kv_heads=2), MultiHeadAttention(16, 4)
    state = few.state_dict()
    for name in ("keys", "values"):
        weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
        repeated = weight.view(2, 4, 16).repeat_interleave(2, 0).reshape(16, 16)
        state[f"{name}.weight"] = repeated
        state[f"{name}.bias"] = bias.view(2, 4).repeat_interleave(2, 0).reshape(16)
    many.load_state_dict(state)
    x = torch.randn(2, 5, 16)
    assert_close(few(x, is_causal=True), many(x, is_causal=True), atol=1e-6, rtol=0)


LAYER, X = MultiHeadAttention(16, 4), torch.randn(1, 5, 16)


def test_stages_take_a_mask_beside_what_goes_by_the_tokens_only_where_it_was_told():
    cope, places = CoPE(LAYER.heads, LAYER.head_dim, 4), torch.arange(X.shape[1])
    tables = AttentionTables(scores=((cope, cope.table(places, places)),))
    window = torch.ones(len(places), len(places)).tril().triu(-1) > 0
    with pytest.raises(ValueError, match="pass padding_mask and document_ids"):
        LAYER.stages(X, tables=tables, attn_mask=window)
    told = LAYER.stages(X, tables=tables, attn_mask=window, told=True)
    near = MultiHeadAttention(LAYER.dim, LAYER.heads, window=2)
    near.load_state_dict(LAYER.state_dict())
    torch.testing.assert_close(told.output, near.to(X.dtype)(X, tables=tables, is_causal=True))


def test_six_words_attend_to_six_words(worked):
    words = worked["attention_6x6"]["sentence"].split()
    attention = MultiHeadAttention(512, heads=1)
    weights = attention.stages(torch.randn(1, len(words), 512)).weights
    assert weights.shape == (1, 1, 6, 6)
    assert_close(weights.sum(-1), torch.ones(1, 1, 6))
    assert (weights > 0).all()
    # The rows that are printed obey the same law, within their three decimals.
    printed = torch.tensor(worked["attention_6x6"]["rows"])
    assert_close(printed.sum(-1), torch.ones(6), atol=3.1e-3, rtol=0)
