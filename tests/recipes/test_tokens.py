"""Recipes for token embeddings, against the modules of the models that they are named after."""

import torch
from transformers import M2M100Config, OPTConfig, WhisperConfig
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.musicgen.modeling_musicgen import MusicgenSinusoidalPositionalEmbedding
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from posenc import recipes
from posenc.positions import consecutive


def test_vaswani2017_scales_adds_and_drops():
    encoding = recipes.vaswani2017(16).tokens[0]
    x = torch.randn(2, 5, 16)
    table = encoding.table(consecutive(5))
    torch.testing.assert_close(encoding.eval()(x), x * 4.0 + table)
    dropped = encoding.train()(x)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], ((x * 4.0 + table) / 0.9)[kept])
    assert not kept.all()


def test_m2m100_counts_from_two():
    config = M2M100Config()
    theirs = M2M100SinusoidalPositionalEmbedding(64, config.d_model, padding_idx=1)
    ids = torch.full((1, 64), 7)
    ours = recipes.m2m100(config.d_model).tokens[0]
    torch.testing.assert_close(ours.table(consecutive(64)), theirs(ids)[0], atol=2e-5, rtol=0)
    assert config.scale_embedding
    assert ours.factor == config.d_model**0.5


def test_whisper_encoder_has_the_tables_of_the_model():
    config = WhisperConfig(
        encoder_layers=1, d_model=64, encoder_attention_heads=2, max_source_positions=100
    )
    theirs = WhisperEncoder(config).embed_positions.weight
    ours = recipes.whisper_encoder(64).tokens[0].table(consecutive(100))
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=0)


def test_opt_skips_two_rows():
    config = OPTConfig()
    theirs = OPTLearnedPositionalEmbedding(config.max_position_embeddings, config.hidden_size)
    ours = recipes.opt(config.hidden_size, max_len=config.max_position_embeddings).tokens[0]
    assert ours.weight.shape == theirs.weight.shape
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
    mask = torch.ones(1, 9, dtype=torch.long)
    torch.testing.assert_close(ours.table(consecutive(9))[None], theirs(mask))


def test_musicgen_has_cosines_first():
    (ours,) = recipes.musicgen(16).tokens
    want = MusicgenSinusoidalPositionalEmbedding.get_embedding(50, 16)
    # Angles up to 49 with frequencies, angles and functions rounded to float32.
    torch.testing.assert_close(ours.table(consecutive(50)), want, atol=2**-24 * 160, rtol=0)
