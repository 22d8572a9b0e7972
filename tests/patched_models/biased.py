"""Tiny models with ALiBi or T5's biases, and what they are asked."""

import functools

import pytest
import torch
import transformers as tf

from posenc.interop.huggingface import patch_biases

# So long that the strided backend serves; a length below it would take a matrix.
LENGTH, PADDED = 150, 37
IDS = torch.randint(2, 97, (2, LENGTH), generator=torch.Generator().manual_seed(0))
REAL = torch.ones_like(IDS)
REAL[0, :PADDED] = 0
HOLES = REAL.clone()
HOLES[1, 20:60] = 0
CLOSE = {"rtol": 2e-5, "atol": 2e-5}

ENDS = {"vocab_size": 97, "pad_token_id": 0, "eos_token_id": None}
FALCON = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True,
          "attn_implementation": "sdpa", **ENDS}  # fmt: skip
GROUPED = {"new_decoder_architecture": True, "num_kv_heads": 2}
DECODERS = {
    "bloom": tf.BloomConfig(hidden_size=48, n_layer=2, n_head=6, **ENDS),
    "mpt": tf.MptConfig(d_model=48, n_layers=2, n_heads=6, max_seq_len=256, **ENDS),
    "falcon": tf.FalconConfig(**FALCON),
    "falcon, grouped": tf.FalconConfig(**FALCON, **GROUPED),
}
T5 = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4,
      "num_decoder_layers": 2, "pad_token_id": 0, "decoder_start_token_id": 0,
      "eos_token_id": 1}  # fmt: skip
FEW = {"num_experts": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}
PAIRS = {
    "t5": tf.T5Config(**T5),
    "umt5": tf.UMT5Config(**T5, relative_attention_num_buckets=20),
    "mt5": tf.MT5Config(**T5),
    "switch": tf.SwitchTransformersConfig(**T5, **FEW),
    "pop2piano": tf.Pop2PianoConfig(**T5),
}
MODELS = DECODERS | PAIRS


def some(names, kept):
    return [n if n in kept else pytest.param(n, marks=pytest.mark.slow("more of its kind"))
            for n in names]  # fmt: skip


decoders = pytest.mark.parametrize("name", some(DECODERS, ("bloom", "mpt", "falcon")))
pairs = pytest.mark.parametrize("name", some(PAIRS, ("t5",)))


@functools.cache
def built(name: str):
    torch.manual_seed(0)
    code = type(MODELS[name]).__name__.removesuffix("Config")
    head = "ForCausalLM" if name in DECODERS else "ForConditionalGeneration"
    model = getattr(tf, code + head)(MODELS[name]).eval()
    for module in model.modules():
        if hasattr(module, "relative_attention_bias"):  # buckets that nobody could confuse
            torch.nn.init.normal_(module.relative_attention_bias.weight)
    return model


@torch.no_grad()
def both(name, run):
    """What ``run`` makes of the model by its own bias, and by ours."""
    model = built(name)
    theirs = run(model)
    with patch_biases(model):
        return theirs, run(model)


def agree(name, run, kept=None):
    kept = slice(None) if kept is None else kept.bool()
    theirs, ours = both(name, run)
    torch.testing.assert_close(ours[kept], theirs[kept], **CLOSE)


def inputs(name, mask=None):
    if name == "pop2piano":  # its tokens are sounds
        return {"inputs_embeds": built(name).shared(IDS), "attention_mask": mask,
                "decoder_input_ids": IDS[:, :-13]}  # fmt: skip
    found = {"input_ids": IDS, "attention_mask": mask}
    return found if name in DECODERS else found | {"decoder_input_ids": IDS[:, :-13]}
