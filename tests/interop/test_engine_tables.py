"""One exact table, loaded by code that is not ours, gives equal bits on all sides."""

import torch
from tests.numerics.arithmetic import engines
from transformers import CohereConfig
from transformers.models.cohere.modeling_cohere import CohereRotaryEmbedding
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as turn_of_cohere
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from posenc import Rotary
from posenc.interop.serving import engine_table
from posenc.numerics.pairing import convert_channels

LENGTH, DIM = 300, 16


def content(dtype=torch.float32):
    return torch.randn(1, 2, LENGTH, DIM, generator=torch.Generator().manual_seed(3)).to(dtype)


def of_both_pairings(form, interleaved_form):
    half, neighbors = (Rotary(DIM, base=5e5, pairing=p) for p in ("half", "interleaved"))
    return engine_table(half, LENGTH, form), engine_table(neighbors, LENGTH, interleaved_form)


def test_forms_hold_the_same_numbers():
    rotary = Rotary(DIM)
    cos, sin = rotary.table(torch.arange(LENGTH)).unbind(-2)
    made = {f: engine_table(rotary, LENGTH, f) for f in ("cos_sin_cache", "complex", "pairs")}
    assert torch.equal(made["cos_sin_cache"]["cos_sin_cache"], torch.cat((cos, sin), -1))
    assert torch.equal(made["complex"]["freqs_cis"], torch.complex(cos, sin))
    assert torch.equal(made["pairs"]["cache"][..., 1], sin)
    narrow = engine_table(rotary, LENGTH, "halves", torch.bfloat16)["cos"]
    assert torch.equal(narrow, rotary.table(torch.arange(LENGTH), dtype=torch.bfloat16)[:, 0])


def test_llama_of_transformers_and_cohere_get_equal_bits_by_loading_one_table():
    """Two families with code of their own, of both pairings. Computed by themselves and by ours,
    the tables differ; loaded, every bit of q is equal."""
    a, b = of_both_pairings("cos_sin", "cos_sin")
    q, line = content(), torch.arange(LENGTH)
    llama = apply_rotary_pos_emb(q, q, a["cos"][line][None], a["sin"][line][None])[0]
    turned = convert_channels(q, "interleaved")
    cohere = turn_of_cohere(turned, turned, b["cos"][line][None], b["sin"][line][None])[0]
    assert torch.equal(convert_channels(cohere, "half"), llama)
    config = CohereConfig(hidden_size=2 * DIM, num_attention_heads=2, rope_parameters={
        "rope_type": "default", "rope_theta": 5e5})  # fmt: skip
    computed = CohereRotaryEmbedding(config)(turned, line[None])
    assert not torch.equal(computed[0][0], b["cos"])


def test_torchtune_with_the_table_has_the_bits_of_transformers_with_it():
    theirs = engines.torchtune()["RotaryPositionalEmbeddings"](DIM, LENGTH, 500_000)
    a, b = of_both_pairings("cos_sin", "pairs")
    theirs.cache.copy_(b["cache"])
    q = content()
    llama = apply_rotary_pos_emb(q, q, a["cos"][None], a["sin"][None])[0]
    tuned = theirs(convert_channels(q, "interleaved").transpose(1, 2)).transpose(1, 2)
    assert torch.equal(convert_channels(tuned, "half"), llama)
