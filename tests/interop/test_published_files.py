"""The fields of files as they are published, with what is known of each model.

What a file leaves out is what its class has by default, so the fields are those of the files, and
the expected words were written from the model's card or paper, not from a reading. Where
transformers has the class, the object that it makes of the same fields has to be read alike.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from posenc import ALiBi, MultimodalRotary, Rotary
from posenc.interop.huggingface import positional_setup

FILES = json.loads(Path(__file__).with_name("published_files.json").read_text(encoding="utf-8"))


def _layer(layer: Any) -> str:
    """A layer in a few words: what rotates of a head, by which base, in which pairs, how far."""
    held = layer.encodings
    if not held:
        return "nothing"
    (encoding,) = held
    if isinstance(encoding, ALiBi):
        return f"ALiBi of {encoding.heads}"
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    if not isinstance(rotary, Rotary):
        return type(encoding).__name__
    words = f"{rotary.rotated_dim}/{rotary.head_dim} by {layer.rope.base:.2g}"
    words += ", 2i with 2i + 1" if rotary.pairing == "interleaved" else ""
    words += " of three" if isinstance(encoding, MultimodalRotary) else ""
    return words + (f" within {layer.window}" if layer.window else "")


def _told(config: object) -> dict[str, Counter]:
    return {
        part.name: Counter(map(_layer, part.layers))
        for part in positional_setup(config)  # type: ignore[arg-type]
    }


def _counted(words: list[str]) -> Counter:
    return Counter({rest: int(count) for count, rest in (each.split(" × ") for each in words)})


@pytest.mark.parametrize(("fields", "known"), FILES.values(), ids=FILES)
def test_a_published_file_means_what_is_known_of_its_model(fields, known):
    assert _told(fields) == {name: _counted(words) for name, words in known.items()}
    model_type = fields["model_type"]
    if model_type in CONFIG_MAPPING:
        model = {name: value for name, value in fields.items() if name != "model_type"}
        assert _told(CONFIG_MAPPING[model_type](**model)) == _told(fields)


def test_a_model_whose_own_fields_stand_beside_its_parts_is_read_too():
    """As CSM, Moshi, the first IDEFICS and Phi-4-multimodal are published."""
    moshi = {"model_type": "moshi", "hidden_size": 4096, "num_attention_heads": 32,
             "num_hidden_layers": 32, "head_dim": 128, "depth_decoder_config": {}}  # fmt: skip
    assert [part.name for part in positional_setup(moshi)] == ["text"]
    names = [part.name for part in positional_setup({"model_type": "pe_video_encoder"})]
    assert names == ["vision", "vision.vision"]
