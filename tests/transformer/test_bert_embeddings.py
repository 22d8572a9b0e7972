"""Three embeddings summed and normalized are those of transformers, with gradients or without."""

import pytest
import torch
from transformers.models.bert.modeling_bert import BertConfig
from transformers.models.bert.modeling_bert import BertEmbeddings as Theirs

from posenc.transformer import BertEmbeddings

DIM, VOCABULARY, LENGTH = 16, 50, 12


@pytest.fixture(scope="module")
def pair():
    config = BertConfig(
        hidden_size=DIM, vocab_size=VOCABULARY, max_position_embeddings=LENGTH,
        num_attention_heads=2, pad_token_id=None,
    )  # fmt: skip
    theirs = Theirs(config).eval()
    ours = BertEmbeddings(DIM, num_embeddings=VOCABULARY, max_len=LENGTH).eval()
    parts = [
        (ours.words, theirs.word_embeddings),
        (ours.token_types, theirs.token_type_embeddings),
        (ours.positions, theirs.position_embeddings),
        (ours.norm, theirs.LayerNorm),
    ]
    with torch.no_grad():
        for own, other in parts:
            own.weight.copy_(other.weight)
    return ours, theirs


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("shape", [None, (7,), (3, 1), (3, 7)], ids=str)
def test_the_sums_are_those_of_transformers(pair, recorded, shape):
    ours, theirs = pair
    ids = torch.randint(VOCABULARY, (3, 7))
    types = None if shape is None else torch.randint(2, shape)
    with torch.set_grad_enabled(recorded):
        made = ours(ids, types)
        want = theirs(ids, None if types is None else types.expand(3, 7))
    assert (made - want).abs().max() < 1e-5
    assert made.requires_grad is recorded
