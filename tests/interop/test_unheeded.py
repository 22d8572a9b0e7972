"""Fields of a rotation that a class does not look at, or that are not read: never silently."""

import pytest

from posenc import Rotary
from posenc.interop.huggingface import positional_setup, rotaries_from_config, rotary_from_config

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
QWEN = {"model_type": "qwen", **SIZES, "rotary_emb_base": 10000, "rotary_pct": 1.0,
        "seq_length": 2048, "max_position_embeddings": 8192}  # fmt: skip


@pytest.mark.parametrize("base", [1e4, None])
@pytest.mark.parametrize("model_type", ["gpt2", "bert", "bloom", "t5", "opt", "inkling_text"])
def test_a_stray_base_makes_no_model_rotate(model_type, base):
    file = {"model_type": model_type, "rope_theta": base}
    with pytest.raises(ValueError, match="no rotary encoding"):
        rotary_from_config(file)
    stray, plain = positional_setup(file), positional_setup({"model_type": model_type})
    for with_it, without in zip(stray.parts, plain.parts, strict=True):
        assert repr(with_it.layers) == repr(without.layers)
    said = "rope_theta stands in the file, and the model does not look at it"
    assert (said in stray.parts[0].notes) is (base is not None)


@pytest.mark.parametrize(
    ("model_type", "field"), [("bert", "rope_theta"), ("xlm-roberta", "rotary_emb_base")]
)
def test_a_file_that_names_its_own_class_is_of_an_unknown_one(model_type, field):
    file = {"model_type": model_type, **SIZES, field: 160_000, "max_position_embeddings": 2048}
    own = {**file, "auto_map": {"AutoModel": "modeling.NewModel"}}
    assert {*map(repr, rotaries_from_config(own))} == {repr(Rotary(16, base=160_000.0))}
    assert repr(rotary_from_config(own)) == repr(Rotary(16, base=160_000.0))
    with pytest.raises(ValueError, match=r"of its own code rotates by it is not"):
        rotary_from_config({**own, "rope_ratio": 50})
    with pytest.raises(ValueError, match="no rotary encoding"):
        rotary_from_config({**file, "auto_map": {"AutoTokenizer": "tokens.NewTokens"}})


def test_switches_of_the_first_qwen_are_told():
    switches = {"use_dynamic_ntk": True, "use_logn_attn": True}
    notes = positional_setup({**QWEN, **switches})["text"].notes
    assert {note.partition(" ")[0] for note in notes} == {*switches, "seq_length"}
    for read in (rotary_from_config, rotaries_from_config):
        with pytest.warns(UserWarning, match="use_dynamic_ntk, use_logn_attn, seq_length"):
            read({**QWEN, **switches}, length=2048)
        with pytest.raises(ValueError, match="changes the frequencies of 2049 tokens"):
            read({**QWEN, **switches}, length=2049)
    notes = positional_setup({"model_type": "llama", **switches})["text"].notes
    assert [note.partition(" ")[0] for note in notes] == [*switches]
