"""T5, MPT, DeBERTa V3 and Transformer-XL: their recipes inside the models they are named after."""

import pytest
import torch
from transformers import (
    DebertaV2Config,
    MptConfig,
    MptModel,
    T5Config,
    Wav2Vec2ConformerConfig,
)
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder
from transformers.models.t5.modeling_t5 import T5Stack
from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import (
    Wav2Vec2ConformerRelPositionalEmbedding,
    Wav2Vec2ConformerSelfAttention,
)

from posenc import attention, recipes

SEQ = 20


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


@pytest.mark.parametrize("decoder", [False, True])
def test_t5_stack_shares_its_bias_among_layers(decoder):
    torch.manual_seed(0)
    config = T5Config(vocab_size=50, d_model=32, d_kv=8, num_heads=4, num_layers=2, d_ff=16,
                      is_decoder=decoder, is_encoder_decoder=False, use_cache=False)  # fmt: skip
    theirs = T5Stack(config).eval()
    name = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    torch.nn.init.normal_(theirs.state_dict()[name])
    ours = recipes.t5(4, decoder=decoder)
    ours.scores[0].load_state_dict({"weight": theirs.state_dict()[name]})
    x = torch.randn(2, SEQ, 32)
    wanted = theirs(inputs_embeds=x).last_hidden_state
    for block in theirs.block:
        layer, feed = block.layer[0], block.layer[-1]
        y = layer.layer_norm(x)
        q, k, v = (heads_of(m(y), 4) for m in (layer.SelfAttention.q, layer.SelfAttention.k,
                                               layer.SelfAttention.v))  # fmt: skip
        made = attention(q, k, v, positional=ours, is_causal=decoder, scale=1.0, backend="strided")
        x = x + layer.SelfAttention.o(made.transpose(1, 2).flatten(-2))
        x = feed(x)
    torch.testing.assert_close(theirs.final_layer_norm(x), wanted, rtol=0, atol=2e-5)


def test_mpt_attention_is_the_models():
    torch.manual_seed(0)
    config = MptConfig(d_model=32, n_heads=4, n_layers=1, max_seq_len=SEQ, vocab_size=50)
    theirs = MptModel(config).eval()
    block, ids = theirs.blocks[0], torch.arange(SEQ)[None]
    seen = []
    block.attn.register_forward_hook(lambda _, args, kwargs, out: seen.append((args, out)),
                                     with_kwargs=True)  # fmt: skip
    theirs(ids)
    x, wanted = seen[0][0][0], seen[0][1][0]
    q, k, v = (heads_of(part, 4) for part in block.attn.Wqkv(x).chunk(3, -1))
    made = attention(q, k, v, positional=recipes.mpt(4), is_causal=True)
    got = block.attn.out_proj(made.transpose(1, 2).flatten(-2))
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)


def test_deberta_v3_encoder_with_its_published_buckets():
    torch.manual_seed(0)
    config = DebertaV2Config(
        hidden_size=32, num_attention_heads=4, num_hidden_layers=1, intermediate_size=16,
        relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True,
        position_buckets=256, max_relative_positions=-1, max_position_embeddings=512,
        norm_rel_ebd="layer_norm", position_biased_input=False,
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0,
    )  # fmt: skip
    theirs = DebertaV2Encoder(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    layer, length = theirs.layer[0].attention.self, 300
    x, embeddings = torch.randn(1, length, 32), theirs.get_rel_embedding()
    ours = recipes.deberta_v3(4, 8)
    ours.scores[0].load(embeddings, keys=layer.key_proj, queries=layer.query_proj)
    wanted = layer(x, torch.ones(1, 1, length, length), rel_embeddings=embeddings)[0]
    q, k, v = (heads_of(m(x), 4) for m in (layer.query_proj, layer.key_proj, layer.value_proj))
    got = attention(q, k, v, positional=ours).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(got, wanted, rtol=0, atol=5e-5)


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
