"""Files that say half of it, or say it twice, against the rotary module that transformers builds.

Whatever a file leaves out, sets to null, says in a field of old or beside its rope dictionary: the
frequencies and the factor of the scores are those of the buffers of the model's own module, or the
file is refused. Files that transformers refuses are not held to it.
"""

import copy
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING

from posenc.interop.configurations import read
from posenc.interop.fields import names
from posenc.interop.rope_models import checked
from posenc.interop.rotary_config import layers_by_type

SIZES = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4}
FIELDS = json.loads(Path(__file__).with_name("odd_fields.json").read_text(encoding="utf-8"))
"""What stands in a file beside its sizes."""

LATENT = ("axk1", "deepseek_v3", "glm4_moe_lite", "longcat_flash", "youtu")
WIDTHS = {"head_dim", "partial_rotary_factor", "qk_rope_head_dim"}
"""Fields with which models of these types fail at their first step."""

USUAL = (
    "deepseek_v3", "gemma3_text", "llama", "mellum", "modernbert", "neomme", "olmo3", "phimoe",
    "step3p5",
)  # fmt: skip
UNHELD = ("mistral4", "mistral_large4_text", "musicflamingo", "nanochat")
"""Types that need fields of a temperature, turn time, or turn backwards."""
TEXTS = [name for name in names() if name in CONFIG_MAPPING and name not in UNHELD]


def _module(config: object) -> torch.nn.Module:
    """The rotary module of a model's own file."""
    where = type(config).__module__.replace("configuration_", "modeling_")
    found = vars(importlib.import_module(where))
    classes = [name for name in found if name.endswith("RotaryEmbedding") and "Vision" not in name]
    begins = type(config).__name__.removesuffix("Config").removesuffix("Text")
    own = sorted((name for name in classes if name.startswith(begins)), key=len)
    return found[(own or classes)[0]](config)


def _compared(model_type: str, fields: dict[str, Any]) -> tuple[int, list[str]]:
    """How many layers were held against a buffer, and what differs."""
    said = {**SIZES, **fields}
    try:
        module = _module(CONFIG_MAPPING[model_type](**copy.deepcopy(said)))
    except Exception:  # transformers refuses in many ways
        return 0, []
    try:
        layers = layers_by_type(checked(read({"model_type": model_type, **said})))
    except ValueError:
        return 0, []
    held, wrong = 0, []
    names = [name for name, _ in module.named_buffers() if "original" not in name]
    names = [name.removesuffix("inv_freq") for name in names if name.endswith("inv_freq")]
    pairs = [(kind, name) for kind in layers for name in names if kind in (None, name[:-1] or None)]
    for kind, prefix in pairs:
        layer, buffer = layers[kind], getattr(module, f"{prefix}inv_freq")
        factor = getattr(module, f"{prefix}attention_scaling", None)
        if not isinstance(factor, int | float):
            continue
        ours = layer.rotary.frequencies
        radians = torch.tensor([float(each) for each in ours.radians()], dtype=torch.float64)
        theirs, held = buffer.double().flatten(), held + 1
        same = radians.shape == theirs.shape and torch.allclose(radians, theirs, rtol=3e-5, atol=0)
        if not same or abs(ours.attention_factor - factor) > 1e-6:
            wrong.append(f"{model_type} {kind} {fields}: {ours!r}")
    return held, wrong


@pytest.mark.parametrize(
    "model_types",
    [USUAL, pytest.param(TEXTS, marks=pytest.mark.slow("every type, one minute"))],
    ids=["usual", "all"],
)
def test_a_file_means_the_buffers_of_the_module_or_is_refused(model_types):
    held, wrong = 0, []
    for model_type in model_types:
        for fields in FIELDS:
            if model_type == "step3p5" and None in fields.get("rope_parameters", {}).values():
                continue  # its class then looks at no dictionary
            if model_type in LATENT and WIDTHS & {*fields}:
                continue
            more, differ = _compared(model_type, fields)
            held, wrong = held + more, wrong + differ
    assert not wrong, "\n".join(wrong)
    assert held > 5 * min(len(model_types), 200)


def test_what_only_a_class_fills_in_is_asked_of_it_or_named(monkeypatch):
    layer = layers_by_type(checked(read({"model_type": "apertus"})))[None]
    assert layer.rope.kind == "llama3"
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match="rope_parameters"):
        checked(read({"model_type": "apertus"}))
