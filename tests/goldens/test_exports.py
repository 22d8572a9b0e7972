"""What exports and caches say of each model type by its defaults: as it was written down once."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from tests.goldens.written import known, near

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.interop.caches import key_storage
from posenc.interop.exports import arrays, gguf_keys, megatron_arguments, vllm_overrides

FROZEN = known("exports")


def told(model_type: str) -> dict[str, Any]:
    """What each export gives; None where it refuses."""
    config = {"model_type": model_type}
    exports = {
        "gguf": lambda: gguf_keys(config).metadata,
        "vllm": lambda: vllm_overrides(config),
        "megatron": lambda: list(megatron_arguments(config)),
        "arrays": lambda: {
            name: [list(x.shape), x.sum().item()] for name, x in arrays(config).tensors.items()
        },
        "caches": lambda: [[len(list(same)), *kept] for kept, same in groupby(_caches(config))],
    }
    found = {}
    for name, export in exports.items():
        try:
            found[name] = export()
        except ValueError:
            found[name] = None
    return found


def _caches(config: dict[str, str]) -> Iterator[tuple]:
    """How each layer keeps its keys."""
    for each in key_storage(config):
        rotary = each.encoding
        rotary = rotary.rotary if isinstance(rotary, MultimodalRotary) else rotary
        of_rotary = () if rotary is None else (rotary.pairing, rotary.head_dim, rotary.rotated)
        yield (each.held, each.rope_type, each.trained_length, *of_rotary)


@pytest.mark.parametrize("model_type", FROZEN)
def test_exports_say_what_they_said(model_type):
    found = told(model_type)
    for name, before in FROZEN[model_type].items():
        if before is not None:  # more types are read since
            assert near(found[name], before, relative=1e-12), name
