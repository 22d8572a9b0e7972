"""Shaw's relative vectors: equations 3 to 5 pair by pair, and the attention of Wav2Vec2-BERT."""

from math import sqrt

import torch
from transformers import Wav2Vec2BertConfig
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

from posenc import Positional, Shaw, attention


def test_attention_with_a_vector_for_each_pair(content, drawn):
    """Keys and values that have the vector of their distance added, one query at a time."""
    q, k, v = content()
    shaw = drawn(Shaw(4, 8, reach=3, values=True))
    table = shaw.table(torch.arange(12), torch.arange(12))
    weights = shaw.encode(q @ k.mT / sqrt(8), table, q=q).softmax(-1)
    out = shaw.encode_output(weights @ v, weights, table)
    for i in range(12):
        clipped = [max(-3, min(3, j - i)) + 3 for j in range(12)]
        keys, values = k + shaw.keys[clipped], v + shaw.values[clipped]
        e = (q[:, :, i : i + 1] @ keys.mT / sqrt(8)).softmax(-1)
        torch.testing.assert_close(out[:, :, i : i + 1], e @ values, rtol=0, atol=1e-12)


def test_it_is_the_relative_key_of_wav2vec2_bert(drawn):
    """transformers' own, whose ``distance_embedding`` has the vectors from left to right."""
    config = Wav2Vec2BertConfig(
        hidden_size=8, num_attention_heads=2, position_embeddings_type="relative_key",
        left_max_position_embeddings=3, right_max_position_embeddings=3,
        attention_dropout=0.0, attn_implementation="eager",
    )  # fmt: skip
    layer, x = drawn(Wav2Vec2BertSelfAttention(config)).eval(), torch.randn(2, 9, 8).double()
    shaw = Shaw(2, 4, reach=3).double()
    shaw.load_state_dict({"keys": layer.distance_embedding.weight})
    parts = (layer.linear_q(x), layer.linear_k(x), layer.linear_v(x))
    q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in parts)
    out = attention(q, k, v, positional=Positional(scores=shaw))
    made = layer.linear_out(out.transpose(1, 2).flatten(2))
    torch.testing.assert_close(made, layer(x)[0], rtol=1e-9, atol=1e-9)
