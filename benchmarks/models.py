"""Prompts of models with biases: their own attention, and ours by ``patch_biases``.

The bodies are models of the library ``transformers`` with random weights, as wide as published ones
(their layers are all alike, so time over time hardly depends on how many there are), and as deep as
is needed for a bias to be shared between layers. Each attends as it does by default: T5 by torch's
attention with its bias as a mask, Bloom and MPT by code of their own, which is all that they have.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import nn

from benchmarks.harness import Case

LENGTHS, QUICK_LENGTHS = (4096,), (512,)
LAYERS = 2
BLOOM_560M = {"hidden_size": 1024, "n_head": 16}
MPT_125M = {"d_model": 768, "n_heads": 12}
T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_heads": 8}


def cases(quick: bool) -> Iterator[Case]:
    """Bloom, MPT and T5."""
    for length in QUICK_LENGTHS if quick else LENGTHS:
        for name, build in bodies(length).items():
            yield _patched(name, build, length)


def bodies(length: int) -> dict[str, Callable[[], nn.Module]]:
    """What builds each body."""
    from transformers import (
        BloomConfig,
        BloomModel,
        MptConfig,
        MptModel,
        T5Config,
        T5EncoderModel,
    )

    bloom = BloomConfig(vocab_size=256, n_layer=LAYERS, **BLOOM_560M)
    mpt = MptConfig(vocab_size=256, n_layers=LAYERS, max_seq_len=length, **MPT_125M)
    t5 = T5Config(vocab_size=256, num_layers=LAYERS, **T5_SMALL)
    return {
        # Each with a configuration of its own, which says how it attends.
        "Bloom 560M": lambda: BloomModel(deepcopy(bloom)),
        "MPT 125M": lambda: MptModel(deepcopy(mpt)),
        "T5 small, encoder": lambda: T5EncoderModel(deepcopy(t5)),
    }


def _patched(name: str, build: Callable[[], nn.Module], length: int) -> Case:
    from posenc.interop.huggingface import patch_biases

    torch.manual_seed(0)
    own, ours = (build().eval() for _ in range(2))
    ours.load_state_dict(own.state_dict())
    patch_biases(ours)
    ids = torch.randint(256, (1, length))
    named = {} if name.startswith("T5") else {"use_cache": False}
    return Case(
        f"models: {name}, {LAYERS} layers, prompt of {length}",
        {"posenc, patched": lambda: ours(ids, **named)},
        lambda: own(ids, **named),
        against="its own",
        family=f"prompt of {name}",
        size=length,
        most_rounds=5,
    )
