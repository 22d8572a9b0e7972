"""Whatever was done to a model, it goes on as that model: copied, pickled, shared, undone late."""

import copy
import io
from functools import cache

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    CodeGenConfig,
    CodeGenForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from posenc.frequencies import Geometric, Linear
from posenc.interop.huggingface import (
    convert_pairing,
    drop_rotary,
    patch,
    patch_biases,
    register_attention,
    unregister_attention,
)

NARROW = {"vocab_size": 61, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
IDS = torch.tensor([[5, 9, 33, 2, 41, 8, 60, 14]])
LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
SEPARATE = {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}

MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**NARROW, **LLAMA)),
    "gptj": lambda: GPTJForCausalLM(GPTJConfig(**NARROW, **SEPARATE)),
    "codegen": lambda: CodeGenForCausalLM(CodeGenConfig(**NARROW, **SEPARATE)),
    "bloom": lambda: BloomForCausalLM(BloomConfig(**NARROW, hidden_size=16, n_layer=2, n_head=2)),
    "t5": lambda: T5ForConditionalGeneration(T5Config(**NARROW, **T5, decoder_start_token_id=0)),
}
CHANGES = {
    "patched": ("llama", patch),
    "rows": ("gptj", patch),
    "rows of codegen": ("codegen", patch),
    "extended": ("llama", lambda model: patch(model, rotary={"rope_type": "linear", "factor": 4})),
    "dropped": ("llama", drop_rotary),
    "converted": ("llama", lambda model: convert_pairing(model, to="interleaved")),
    "alibi": ("bloom", patch_biases),
    "t5": ("t5", patch_biases),
}


@cache
def original(name: str):
    """A model whose logits tell where its tokens stand: its weights are larger than usual."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(5 if each.ndim > 1 else 1)
    return model


@torch.no_grad()
def logits(model, **given):
    pair = {"decoder_input_ids": IDS} if model.config.is_encoder_decoder else {}
    return model(input_ids=IDS, **pair, **given).logits


def pickled(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    unregister_attention()  # as in another process
    return torch.load(file, weights_only=False)


@pytest.fixture(autouse=True)
def attention_of_ours():
    yield
    register_attention()


LIVES = {
    "deepcopy": copy.deepcopy,
    "pickled": pickled,
    "cast": lambda model: copy.deepcopy(model).double().float(),
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_computes_as_its_model_and_stands_alone(change, life):
    name, changing = CHANGES[change]
    model = copy.deepcopy(original(name))
    changing(model)
    wanted = logits(model)
    other = LIVES[life](model)
    for each in model.parameters():
        each.data.zero_()
    torch.testing.assert_close(logits(other), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("change", ["patched", "converted", "t5"])
def test_models_that_train_in_parts_still_do(change):
    name, changing = CHANGES[change]
    model = copy.deepcopy(original(name)).train()
    for part in list(model.modules())[3::4]:  # frozen parts, as batch norms and towers are
        part.training = False
    modes = {part: part.training for part in model.modules()}
    changing(model)
    assert {part: part.training for part in modes} == modes


DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
LISTS = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 8,
    "long_factor": [3.0] * 8,
    "factor": 4.0,
    "original_max_position_embeddings": 6,
}


@pytest.mark.parametrize("rope", [DYNAMIC, LISTS], ids=["dynamic", "longrope"])
def test_frequencies_that_grow_are_not_carried_past_their_length(rope):
    longest = 6 if rope is DYNAMIC else 24
    given = {"max_position_embeddings": longest, "rope_parameters": {"rope_theta": 1e4, **rope}}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**NARROW, **LLAMA, **given)).eval()
    before = logits(model)
    near = model(IDS[:, :5]).logits  # a short row, after which transformers goes back
    with patch(model):
        with pytest.raises(ValueError, match="hold for 6 positions"):
            logits(model)
        torch.testing.assert_close(model(IDS[:, :5]).logits, near, rtol=0, atol=1e-5)
        with pytest.raises(ValueError, match="hold for 6 positions"):
            logits(pickled(model))
    with patch(model, length=8):
        torch.testing.assert_close(logits(model), before, rtol=0, atol=1e-5)
    plain = Linear(Geometric(16), factor=2.0)  # what a caller gives holds everywhere
    with patch(model, rotary=plain):
        assert logits(model).isfinite().all()


@pytest.mark.slow("a graph is made for each")
@pytest.mark.compiles
def test_a_graph_looks_how_far_frequencies_hold():
    given = {"max_position_embeddings": 6, "rope_parameters": {"rope_theta": 1e4, **DYNAMIC}}
    model = LlamaForCausalLM(LlamaConfig(**NARROW, **LLAMA, **given)).eval()
    with patch(model):
        rotary = torch.compile(model.model.rotary_emb, backend="aot_eager", fullgraph=True)
        cos, _ = rotary(torch.zeros(1, 1, 32), torch.arange(6)[None])
        assert cos.isfinite().all()
        with pytest.raises(RuntimeError, match="6 positions"):
            rotary(torch.zeros(1, 1, 32), torch.arange(7)[None])
