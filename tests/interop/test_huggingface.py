"""A BERT of transformers with random weights, taken over, computes the same hidden states."""

import pytest
import torch
from torch.testing import assert_close
from transformers import BertConfig, BertModel

from posenc.interop.bert import EMBEDDINGS
from posenc.interop.huggingface import bert_from_transformers

SIZES = {
    "vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 50, "max_position_embeddings": 40, "initializer_range": 0.3,
}  # fmt: skip


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES)).eval()
    for name, weight in model.named_parameters():
        if "LayerNorm" in name or "bias" in name:  # they start as ones and zeros: let them differ
            torch.nn.init.normal_(weight, mean=1.0, std=0.2)
    return model


@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_the_hidden_states_are_the_same(model, implementation, dtype, far):
    model.set_attn_implementation(implementation)
    model.to(dtype)
    bert = bert_from_transformers(model)
    ids = torch.randint(1, 60, (3, 11))
    types = torch.randint(0, 2, (3, 11))
    real = torch.ones(3, 11, dtype=torch.bool)
    real[0, 7:] = real[1, 3:] = False
    for mask, token_types in ((None, None), (None, types), (real, None), (real, types)):
        with torch.no_grad():
            want = model(
                ids,
                attention_mask=None if mask is None else mask.long(),
                token_type_ids=token_types,
            ).last_hidden_state
            got = bert(ids, padding_mask=mask, token_types=token_types)
        rows = slice(None) if mask is None else mask
        assert got.dtype == dtype
        assert_close(got[rows], want[rows], atol=far, rtol=0)


def test_left_padding_counts_padding_there_and_real_tokens_here(model):
    bert = bert_from_transformers(model)
    ids = torch.randint(1, 60, (1, 6))
    real = torch.tensor([[False, False, True, True, True, True]])
    with torch.no_grad():
        theirs = model(ids, attention_mask=real.long()).last_hidden_state
        ours = bert(ids, padding_mask=real)
        alone = model(ids[:, 2:]).last_hidden_state
        at_theirs = bert(ids, torch.arange(6), padding_mask=real)
    assert_close(ours[:, 2:], alone, atol=1e-5, rtol=0)
    assert_close(at_theirs[:, 2:], theirs[:, 2:], atol=1e-5, rtol=0)
    assert (theirs[:, 2:] - alone).abs().max() > 0.01


def test_what_does_not_learn_there_does_not_learn_here():
    model = BertModel(
        BertConfig(**SIZES, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    ).train()
    model.embeddings.requires_grad_(False)
    model.encoder.layer[1].intermediate.dense.bias.requires_grad_(False)
    model.encoder.layer[2] = model.encoder.layer[0]
    bert = bert_from_transformers(model)
    still = {name for name, each in bert.named_parameters() if not each.requires_grad}
    assert still == {*EMBEDDINGS, "encoder.blocks.1.feed_forward.expand.bias"}
    first, _, third = bert.encoder.blocks
    assert all(a is b for a, b in zip(first.parameters(), third.parameters(), strict=True))
    assert bert.training
    assert (first.dropout.p, first.attention.dropout) == (0.3, 0.2)
