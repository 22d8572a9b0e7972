"""Prompts of models with biases: their own attention, and ours by ``patch_biases``.

The bodies are narrow, so that most of the work is attention, and as deep as is needed for a bias to
be shared between layers. They are models of the library ``transformers`` with random weights.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy

import torch
from torch import nn

from benchmarks.harness import Case

LENGTHS, QUICK_LENGTHS = (4096,), (512,)
LAYERS, HEADS, WIDTH = 2, 8, 256


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

    bloom = BloomConfig(vocab_size=256, hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS)
    mpt = MptConfig(
        vocab_size=256, d_model=WIDTH, n_layers=LAYERS, n_heads=HEADS, max_seq_len=length
    )
    t5 = T5Config(
        vocab_size=256, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=4 * WIDTH, num_layers=LAYERS,
        num_heads=HEADS,
    )  # fmt: skip
    return {
        # Each with a configuration of its own, which says how it attends.
        "Bloom": lambda: BloomModel(deepcopy(bloom)),
        "MPT": lambda: MptModel(deepcopy(mpt)),
        "T5 encoder": lambda: T5EncoderModel(deepcopy(t5)),
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
