"""What exports and caches say of each model type by its defaults: as it was written down once."""

import json
from pathlib import Path
from typing import Any

import pytest

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.interop.caches import key_storage
from posenc.interop.exports import arrays, gguf_keys, megatron_arguments, vllm_overrides

PATH = Path(__file__).parent / "exports.json"
FROZEN: dict[str, Any] = json.loads(PATH.read_text()) if PATH.exists() else {}


def told(model_type: str) -> dict[str, Any]:
    """What each export gives; None where it refuses."""
    config = {"model_type": model_type}
    exports = {
        "gguf": lambda: gguf_keys(config).metadata,
        "vllm": lambda: vllm_overrides(config),
        "megatron": lambda: list(megatron_arguments(config)),
        "arrays": lambda: {n: [list(x.shape), x.sum().item()] for n, x in _tensors(config)},
        "caches": lambda: [[k, *v] for k, v in _caches(config)],
    }
    found = {}
    for name, export in exports.items():
        try:
            found[name] = export()
        except ValueError:
            found[name] = None
    return found


def _tensors(config: dict[str, str]) -> Any:
    return arrays(config).tensors.items()


def _caches(config: dict[str, str]) -> list[tuple[int, tuple]]:
    """Runs of layers that keep their keys alike: how many, and how."""
    runs: list[tuple[int, tuple]] = []
    for each in key_storage(config):
        rotary = each.encoding.rotary if isinstance(each.encoding, MultimodalRotary) else (
            each.encoding
        )  # fmt: skip
        kept = (each.held, each.rope_type, each.trained_length) + (
            () if rotary is None else (rotary.pairing, rotary.head_dim, rotary.rotated)
        )
        if runs and runs[-1][1] == kept:
            runs[-1] = (runs[-1][0] + 1, kept)
        else:
            runs.append((1, kept))
    return runs


@pytest.mark.parametrize("model_type", FROZEN)
def test_exports_say_what_they_said(model_type):
    found = told(model_type)
    for name, before in FROZEN[model_type].items():
        if name == "arrays" and before:
            assert found[name].keys() == before.keys()
            for key, (shape, total) in before.items():
                assert found[name][key] == [shape, pytest.approx(total, rel=1e-12)]
        elif before is not None:  # more types are read since
            assert found[name] == before, name
