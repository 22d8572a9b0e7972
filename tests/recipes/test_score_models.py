"""The recipe of the Conformer inside its model."""

import torch
from transformers import (
    Wav2Vec2ConformerConfig,
)
from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import (
    Wav2Vec2ConformerRelPositionalEmbedding,
    Wav2Vec2ConformerSelfAttention,
)

from posenc import attention, recipes


@torch.no_grad()
def test_conformer_looks_both_ways_as_transformer_xl():
    """Sine and cosine of a pair are neighbors there; the columns of the map are sorted for it."""
    config = Wav2Vec2ConformerConfig(
        hidden_size=32, num_attention_heads=2, position_embeddings_type="relative"
    )
    config._attn_implementation = "eager"
    module, x = Wav2Vec2ConformerSelfAttention(config).eval(), torch.randn(1, 7, 32)
    ours = recipes.conformer(2, 16)
    (bias,) = ours.scores
    for mine, theirs in ((bias.u, module.pos_bias_u), (bias.v, module.pos_bias_v)):
        mine.copy_(torch.nn.init.normal_(theirs))
    bias.weight.copy_(module.linear_pos.weight[:, [*range(0, 32, 2), *range(1, 32, 2)]])
    want = module(
        x, relative_position_embeddings=Wav2Vec2ConformerRelPositionalEmbedding(config)(x)
    )
    q, k, v = (
        map_of(x).unflatten(-1, (2, 16)).transpose(1, 2)
        for map_of in (module.linear_q, module.linear_k, module.linear_v)
    )
    made = attention(q, k, v, positional=ours).transpose(1, 2).flatten(2)
    torch.testing.assert_close(module.linear_out(made), want[0], atol=1e-5, rtol=0)
