"""Doors to Hugging Face models; ``transformers`` itself is imported only where it is needed."""

from posenc.interop.attention import register_attention, unregister_attention
from posenc.interop.bert import Bert, bert_from_transformers
from posenc.interop.biases import BiasPatch, patch_biases, unpatch_biases
from posenc.interop.caches import KeyStorage, key_storage, move_cached_keys, rerotate_cached_keys
from posenc.interop.patching import Patch, drop_rotary, patch, unpatch
from posenc.interop.position_ids import multimodal_positions
from posenc.interop.registry import register, unregister
from posenc.interop.rope_layers import rope_dictionary
from posenc.interop.rotary_config import (
    rotaries_from_config,
    rotary_from_config,
    temperatures_from_config,
)
from posenc.interop.setup import LayerSetup, Part, PositionalSetup
from posenc.interop.setup_reading import positional_setup
from posenc.interop.weights import (
    ConvertedPairing,
    RowOrder,
    convert_pairing,
    convert_weights,
    rotate_as_converted,
    row_orders,
)

__all__ = [
    "Bert", "BiasPatch", "ConvertedPairing", "KeyStorage", "LayerSetup", "Part", "Patch",
    "PositionalSetup", "RowOrder", "bert_from_transformers", "convert_pairing",
    "convert_weights", "drop_rotary", "key_storage", "move_cached_keys", "multimodal_positions",
    "patch", "patch_biases", "positional_setup", "register", "register_attention",
    "rerotate_cached_keys", "rope_dictionary", "rotaries_from_config", "rotary_from_config",
    "rotate_as_converted", "row_orders", "temperatures_from_config", "unpatch",
    "unpatch_biases", "unregister", "unregister_attention",
]  # fmt: skip
