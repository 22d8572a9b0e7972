"""A model of ``transformers`` without its rotary positions, to be trained a little further."""

from dataclasses import replace

from torch import nn

from posenc.frequencies import FromCheckpoint
from posenc.interop.oracle.encodings import with_frequencies
from posenc.interop.patching import Patch, replaced
from posenc.interop.patching.admission import Admitted
from posenc.interop.rotary_config import RotaryLayer


def drop_rotary(model: nn.Module) -> Patch:
    """Take the rotary positions out of a loaded model, in place: every pair stands still.

    DroPE: rotary positions help a model to learn, and keep it from reading further than it was
    trained. Drop them after training, then train a little further at the length that it knows;
    until then the model is of no use. Order reaches it through the causal mask alone.

    The attention factor of an extension is dropped, too. No configuration says so: call
    ``drop_rotary`` again on a model that was saved and loaded. ``undo()`` puts the rotation back.

    Reference:
        Gelberg et al. 2025, "Extending the Context of Pretrained LLMs by Dropping Their Positional
        Embeddings" (arXiv:2512.12167).

    Example:
        >>> import torch
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model = LlamaForCausalLM(config).eval()
        >>> dropped = drop_rotary(model)
        >>> one, other = model(torch.tensor([[3, 5, 8, 1], [8, 3, 5, 1]])).logits[:, -1]
        >>> torch.allclose(one, other, atol=1e-6)  # one layer sees a set of earlier tokens
        True
        >>> dropped.undo()
    """

    def still(found: Admitted) -> dict[str, RotaryLayer]:
        made = {}
        for kind, layer in found.layers.items():
            zeros = FromCheckpoint([0.0] * len(layer.rotary.sincos))
            made[kind] = replace(layer, encoding=with_frequencies(layer.encoding, zeros))
        return made

    return replaced(model, still)
