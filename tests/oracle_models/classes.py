"""What the classes of transformers say of every model type, for ``families.json``.

A config.json may leave out what its class has by default, and older ones call fields otherwise.
"""

import copy
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedConfig

from posenc.interop.oracle import classes_of

TELLING = re.compile(
    r"rope|rotary|theta|position|n_ctx|max_(seq|source|target|text|audio|2d|len|frames)|head_dim"
    r"|heads|n_head|kv_channels|hidden_size|hidden_dim|d_model|n_embd|emb_dim|embed_dim|^dim$"
    r"|^width$|num_.*layers$|^n_layers?$|encoder_layers$|decoder_layers$|depths?$|sliding"
    r"|window|chunk|relative|rel_|alibi|scal|multiplier|softcap|temperature|layer_types|block_type"
    r"|pattern|every_n|interval|period|offset|pad_token_id|image_size|patch_size|tubelet"
    r"|num_frames|share_att_key|qk_|attn_|layers_idx|attention_layers|full_attn|d_kv|kv_dim|no_rope|mup"
    r"|embedding_size|projection_dim|absolute|distilled|num_patches|^layers$|[lrx]_layers$"
    r"|^(input_size|context_length|prediction_length|label_length)$|pos_|_pos|c2p|p2c|conv_|global_|local_|sinusoidal"
)
"""Names of fields that may have to do with positions."""

PARTLY = re.compile(r"partial_rotary_factor|rotary_dim|rotary_ndims|rotary_pct")
"""What stands in the code of models that can rotate a part of a head."""


def said() -> dict[str, dict[str, Any]]:
    """By model type: defaults, other names of fields, parts, and what the code heeds."""
    return {name: of(CONFIG_MAPPING[name]) for name in sorted(CONFIG_MAPPING.keys())}


def of(kind: type[PreTrainedConfig]) -> dict[str, Any]:
    """Of one class."""
    plain = {
        name: vars(owner).get(name)
        for owner in reversed(kind.__mro__)
        if issubclass(owner, PreTrainedConfig) and owner is not PreTrainedConfig
        for name in vars(owner).get("__annotations__", ())
        if TELLING.search(name) and _is_plain(vars(owner).get(name))
    }
    names = {k: v for k, v in kind.attribute_map.items() if TELLING.search(k) or k in ROLES}
    parts, flat = _parts(kind), _takes_flat(kind)
    found = {
        "theta": kind.default_theta if kind.default_theta != 10_000.0 else None,
        "names": names,
        "kept": _kept(kind, names),
        "parts": parts,
        "usual": _usual(kind, parts),
        "flat": flat,
        "dropped": _dropped(kind) if flat else [],
        "filled": _filled(kind),
        "derived": _derived(kind),
        "sense": _sense(kind),
        "partly": bool(PARTLY.search(_code(kind))),
    }
    return {"defaults": plain, **{name: value for name, value in found.items() if value}}


ROLES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")


def _kept(kind: type[PreTrainedConfig], names: dict[str, str]) -> dict[str, dict[str, Any]]:
    """By another name of a field: what the class has made of the field before it looks at it."""
    found = {}
    for name, field in names.items():
        usual = vars(kind).get(field)
        if type(usual) is not int or name == field:
            continue
        try:
            made, meant = (kind(**{each: 2 * usual}).to_dict() for each in (name, field))
        except Exception:
            continue  # it is refused by one of the names
        own = {k: v for k, v in made.items() if meant[k] != v and TELLING.search(k)}
        if own := {k: v for k, v in own.items() if v is not None and _is_plain(v)}:
            found[name] = own
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= 64 and all(isinstance(x, int | float | str) for x in value)
    if isinstance(value, dict):
        return all(_is_plain(each) for each in value.values())
    return isinstance(value, bool | int | float | str)


def _parts(kind: type[PreTrainedConfig]) -> dict[str, str]:
    """Nested configurations, each with its type by default; "" where anything may stand there."""
    specs = getattr(kind, "sub_configs_defaults", {}) or {}
    found = {}
    for name, spec in specs.items():
        try:
            inner = spec.config_class if hasattr(spec, "config_class") else spec
            found[name] = getattr(inner, "model_type", "") or ""
        except Exception:
            found[name] = ""
    # Evolla's encoder of proteins is listed among those alone that a file may hold.
    for name, inner in (getattr(kind, "sub_configs", {}) or {}).items():
        if name not in found and hasattr(inner, "num_hidden_layers"):
            found[name] = getattr(inner, "model_type", "") or ""
    return found


def _usual(kind: type[PreTrainedConfig], parts: dict[str, str]) -> dict[str, str]:
    """The types of parts in which anything may stand, where a file names none."""
    specs = getattr(kind, "sub_configs_defaults", {}) or {}
    found = {name: getattr(specs.get(name), "model_type", "") for name in parts if not parts[name]}
    return {name: usual for name, usual in found.items() if usual in CONFIG_MAPPING}


def _takes_flat(kind: type[PreTrainedConfig]) -> bool:
    """Whether fields that stand beside a missing ``text_config`` reach it."""
    if "text_config" not in (getattr(kind, "sub_configs_defaults", {}) or {}):
        return False
    try:
        made = kind.from_dict({"max_position_embeddings": 777}).text_config
    except Exception:
        return False
    return getattr(made, "max_position_embeddings", None) == 777


LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 5.0}
BESIDE = {
    "hidden_size": 96,
    "head_dim": 96,
    "max_position_embeddings": 777,
    "original_max_position_embeddings": 555,
    "partial_rotary_factor": 0.75,
    "rope_theta": 77.0,
    "rope_parameters": LINEAR,
    "rope_scaling": LINEAR,
}
"""Fields on which a rotation depends, each with a value that no class has by default."""


def _dropped(kind: type[PreTrainedConfig]) -> list[str]:
    """Which of these fields ``text_config`` looks at, and not from beside it."""
    inner = type(kind.from_dict({}).text_config)
    partly = PARTLY.search(_code(inner))
    names = [name for name in BESIDE if partly or name != "partial_rotary_factor"]
    beside = {name: _differs(lambda said: kind.from_dict(said).text_config, name) for name in names}
    return [name for name in names if not beside[name] and _differs(inner.from_dict, name)]


def _differs(make: Callable[[dict[str, Any]], Any], name: str) -> bool:
    try:
        made = make({name: copy.deepcopy(BESIDE[name])})
    except Exception:
        return True  # it was looked at, and refused
    return made.to_dict() != make({}).to_dict()


def _filled(kind: type[PreTrainedConfig]) -> dict[str, dict[str, Any]]:
    """What a class puts into a part that a file has, where that is silent."""
    found = {}
    for name, spec in (getattr(kind, "sub_configs_defaults", {}) or {}).items():
        own = {k: v for k, v in getattr(spec, "init_kwargs", {}).items() if TELLING.search(k)}
        try:
            made = getattr(kind(**{name: {"model_type": spec.model_type}}), name).to_dict()
            plain = CONFIG_MAPPING[spec.model_type]().to_dict()
        except Exception:
            continue
        told = {k: v for k, v in own.items() if plain.get(k) != v and k in plain}
        if told and all(made.get(k) == v for k, v in told.items()):
            found[name] = {k: v for k, v in own.items() if _is_plain(v)}
    return found


def _derived(kind: type[PreTrainedConfig]) -> list[str]:
    """Fields that are None in the class, and that it fills in by itself."""
    try:
        filled = kind().to_dict()
    except Exception:
        return []
    absent = [
        name
        for owner in kind.__mro__
        if issubclass(owner, PreTrainedConfig) and owner is not PreTrainedConfig
        for name in vars(owner).get("__annotations__", ())
        if vars(owner).get(name) is None and TELLING.search(name)
    ]
    return sorted({n for n in absent if filled.get(n) is not None and _is_plain(filled[n])})


SENSES = {
    "pixel_values": "vision",
    "pixel_values_videos": "vision",
    "input_features": "audio",
    "input_values": "audio",
}
"""What a model perceives, by the input that its class names first."""


def _sense(kind: type[PreTrainedConfig]) -> str | None:
    """What a model sees or hears first; None of text, and where no class says."""
    try:
        first = classes_of(kind)[0].main_input_name
    except (ImportError, IndexError):
        return None
    texts = re.search(r"(^|_)text(_|$)", kind.model_type)
    return SENSES.get(first) if isinstance(first, str) and not texts else None


def _code(kind: type[PreTrainedConfig]) -> str:
    name = kind.__module__.replace("configuration_", "modeling_")
    try:
        return inspect.getsource(import_module(name))
    except Exception:
        return ""
