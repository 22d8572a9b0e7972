"""Models and configurations of transformers: their positional parts, built to be asked."""

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from posenc.audit.report import CannotCheckError
from posenc.audit.signatures import applies
from posenc.audit.subjects import Subject
from posenc.encodings.queries_keys import MultimodalRotary, Rotary
from posenc.interop.oracle import asked, watched
from posenc.interop.rotary_config import rotary_from_config, softmax_scale_from_config

# What learned tables are called.
LEARNED = ("wpe", "position_embeddings", "embed_positions", "position_embedding")


@dataclass(frozen=True)
class Part:
    """One positional part of a model."""

    name: str  # its class, with where it stands
    subject: Any  # A function that builds it, or the part itself
    config: Any  # the configuration that it must agree with
    kind: str | None  # what it is; found out if None
    length: int | None  # what the model is built for
    applied: str | None = None  # what applies its cosines and sines, where that was seen


def named(model: Any) -> str:
    """What to call a model or the file of a configuration."""
    return str(model) if isinstance(model, str | Path) else type(model).__name__


def parts(given: Any) -> list[Part] | None:
    """The positional parts of a model, a configuration, or its file; None for anything else."""
    if isinstance(given, str | Path) or _is_config(given):
        model, config = _built(given)
    elif hasattr(given, "base_model_prefix") and _is_config(getattr(given, "config", None)):
        model, config = given, given.config
    else:
        return None
    found = list(_found(model, config, rebuilt=model is not given))
    if not found:
        raise CannotCheckError(
            f"{type(model).__name__} has no rotary embedding, T5's bias, ALiBi, or table of "
            f"positions that is known here. Check its module itself."
        )
    return found


def _is_config(thing: Any) -> bool:
    module = sys.modules.get("transformers")
    return module is not None and isinstance(thing, module.PreTrainedConfig)


def _built(given: Any) -> tuple[Any, Any]:
    """The text model of a configuration without memory, of one layer where all are alike; and its
    own configuration."""
    try:
        from transformers import AutoConfig, AutoModel

        is_file = isinstance(given, str | Path)
        config = AutoConfig.from_pretrained(str(given), local_files_only=True) if is_file else given
        text = config.get_text_config()
        small = copy.deepcopy(text)
        layers = getattr(small, "num_hidden_layers", None)
        if isinstance(layers, int) and layers > 1 and not getattr(small, "layer_types", None):
            small.num_hidden_layers = 1
        with torch.device("meta"):
            return AutoModel.from_config(small), text
    except Exception as error:
        told = f"{named(given)}: {type(error).__name__}: {error}"
        raise CannotCheckError(f"transformers cannot build {told}") from error


def _found(model: nn.Module, config: Any, *, rebuilt: bool) -> Iterator[Part]:
    seen: list[tuple] = []
    length = getattr(config, "max_position_embeddings", None)
    for path, module in model.named_modules():
        name = type(module).__name__
        told = f"{name} at {path}"
        build = partial(_rebuilt, module, config) if rebuilt else partial(copy.deepcopy, module)
        if isinstance(module, nn.Embedding) and path.rpartition(".")[2] in LEARNED:
            table = partial(nn.Embedding, *module.weight.shape) if rebuilt else build
            yield Part(path, table, None, "added", len(module.weight))
            continue
        has_bias = getattr(module, "has_relative_attention_bias", False)
        is_bias = has_bias and hasattr(module, "compute_bias")
        is_rotary = "RotaryEmbedding" in name
        is_added = "PositionalEmbedding" in name or "PositionEmbedding" in name
        if not (is_rotary or is_bias or is_added) or (likeness := _likeness(module)) in seen:
            continue
        seen.append(likeness)
        if not is_rotary:
            yield Part(told, build, None, "bias" if is_bias else None, length)
            continue
        applied, own = _applier_of(model, path, config), getattr(module, "config", config)
        if "layer_type" not in inspect.signature(module.forward).parameters:
            yield Part(told, build, own, "rotary", length, applied)
            continue
        for each in dict.fromkeys(getattr(own, "layer_types", None) or ()):
            of_layers = partial(_of_layers, build, each)
            yield Part(f"{told} of {each}", of_layers, (own, each), "rotary", length, applied)
    beside = inspect.getmodule(type(model))
    for name in ("build_alibi_tensor", "build_mpt_alibi_tensor"):
        function = getattr(beside, name, None)
        if callable(function) and getattr(config, "alibi", True) is not False:
            heads = getattr(config, "num_attention_heads", None) or config.n_heads
            bias = partial(function, num_heads=heads)
            yield Part(f"{name} for {heads} heads", lambda bias=bias: bias, None, "bias", None)


def _applier_of(model: nn.Module, path: str, config: Any) -> str | None:
    """The function by which layers apply a rotary module; None if that is not seen."""
    around = model.get_submodule(path.rpartition(".")[0])
    users: list[str] = []
    found: set[str] = set()
    for name, module in around.named_modules():
        inside = any(name.startswith(f"{other}.") for other in users if other)
        if not inside and (named := _named_in(module)):
            users.append(name)
            found |= named
    if len(found) > 1:
        try:
            seen = watched(asked(config)).rotated
        except Exception:  # of whatever kind a model has that takes other content
            return None
        found &= {call.name for call in seen if "indexer" not in call.path}
    return found.pop() if len(found) == 1 else None


def _named_in(layer: nn.Module) -> set[str]:
    """The functions that its forward names, and that apply."""
    forward = inspect.unwrap(type(layer).forward)
    names = forward.__code__.co_names if inspect.isfunction(forward) else ()
    return {n for n in names if applies(n) and callable(forward.__globals__.get(n))}


def _likeness(module: nn.Module) -> tuple:
    """What is equal for modules of one kind in several layers."""
    plain = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, bool | int | float | str | tuple) and not name.startswith("layer_i")
    }
    buffers = {n: x.shape if x.is_meta else x.tolist() for n, x in module.named_buffers()}
    return type(module), getattr(module, "config", None), plain, buffers


def _of_layers(build: Callable[[], nn.Module], layer_type: str) -> nn.Module:
    """A rotary module that is told of which layers it is asked."""
    module = build()
    module.forward = partial(module.forward, layer_type=layer_type)
    return module


def _rebuilt(module: nn.Module, config: Any) -> nn.Module:
    """A part built anew, with memory: from its configuration, or by the sizes that it has."""
    names = inspect.signature(type(module)).parameters
    values = {n: getattr(module, n, config if n == "config" else None) for n in names}
    plain = {n: v for n, v in values.items() if not isinstance(v, torch.Tensor | nn.Module | None)}
    return type(module)(**plain)


def meant(subject: Subject, config: Any) -> Rotary | MultimodalRotary | None:
    """The rotary encoding that the configuration beside a subject means, where it is one of all."""
    return _by_configuration(subject, config, rotary_from_config)


def expected_scale(subject: Subject) -> float | None:
    """What the configuration beside a subject says that scores are multiplied with."""
    return _by_configuration(subject, None, softmax_scale_from_config)


def _by_configuration(subject: Subject, config: Any, read: Callable[..., Any]) -> Any:
    """What is read of a configuration, for its layers of a subject; None without one."""
    config = getattr(subject.fresh(), "config", None) if config is None else config
    config, layer_type = config if isinstance(config, tuple) else (config, None)
    if not (_is_config(config) or isinstance(config, dict | str | Path)):
        return None
    try:
        return read(config, layer_type=layer_type)
    except (ValueError, OSError):
        return None
