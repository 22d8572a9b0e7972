"""Models and configurations of transformers: their positional parts, built to be asked."""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from posenc.audit.applied import applier_of
from posenc.audit.report import CannotCheckError, merged
from posenc.audit.subjects import Subject
from posenc.encodings.queries_keys import MultimodalRotary, Rotary

__all__ = ["Part", "expected", "merged", "named", "parts"]


@dataclass(frozen=True)
class Part:
    """One positional part of a model.

    Attributes:
        name: Its class, with where it stands.
        subject: A function that builds it, or the part itself.
        config: The configuration that it must agree with.
        kind: What it is.
        length: What the model is built for.
        applied: The function that applies its cosines and sines, where that was seen.
    """

    name: str
    subject: Any
    config: Any
    kind: str | None
    length: int | None
    applied: str | None = None


def named(model: Any) -> str:
    """What to call a model or the file of a configuration."""
    if isinstance(model, str | Path):
        return str(model)
    return type(model).__name__


def parts(given: Any, config: Any) -> list[Part] | None:
    """The positional parts of a model, of a configuration, or of its file; None for anything else.

    Raises:
        CannotCheckError: It is one of these, but transformers is missing, cannot build it, or
            nothing in it can be asked.
    """
    if isinstance(given, str | Path):
        return _parts_of(_read(Path(given)))
    if _is_config(given):
        return _parts_of(given)
    is_model = isinstance(given, nn.Module) and hasattr(given, "base_model_prefix")
    if is_model and _is_config(getattr(given, "config", None)):
        return list(_found(given, given.config, rebuilt=False)) or _none(given)
    return None


def _is_config(thing: Any) -> bool:
    module = sys.modules.get("transformers")
    return module is not None and isinstance(thing, module.PreTrainedConfig)


def _read(path: Path) -> Any:
    try:
        from transformers import AutoConfig
    except ImportError:
        raise CannotCheckError(
            "a configuration is built with transformers, which is not installed: pip install "
            "transformers"
        ) from None
    if not path.exists():
        raise CannotCheckError(f"{path} is no file or folder; give the path of a config.json")
    try:
        return AutoConfig.from_pretrained(str(path), local_files_only=True)
    except Exception as error:
        raise CannotCheckError(
            f"{path} is no configuration: {type(error).__name__}: {error}"
        ) from error


def _parts_of(config: Any) -> list[Part]:
    """Those of a model that is built without memory; the parts themselves are built anew."""
    from transformers import AutoModel

    try:
        text = config.get_text_config() if hasattr(config, "get_text_config") else config
        with torch.device("meta"):
            model = AutoModel.from_config(_small(text))
    except Exception as error:
        raise CannotCheckError(
            f"transformers cannot build {type(config).__name__}: {type(error).__name__}: {error}"
        ) from error
    return list(_found(model, text, rebuilt=True)) or _none(model)


def _small(config: Any) -> Any:
    """One layer is enough: the parts of all are alike or shared."""
    import copy

    small = copy.deepcopy(config)
    layers = getattr(small, "num_hidden_layers", None)
    types = getattr(small, "layer_types", None)
    if isinstance(layers, int) and layers > 1 and not types:
        small.num_hidden_layers = 1
    return small


def _none(model: Any) -> list[Part]:
    raise CannotCheckError(
        f"{type(model).__name__} has no positional part that is known here (rotary embeddings, "
        f"T5's "
        f"bias, ALiBi, sinusoidal or learned positions). Check its module itself."
    )


def _found(model: nn.Module, config: Any, *, rebuilt: bool) -> Iterator[Part]:
    seen: list[nn.Module] = []
    length = getattr(config, "max_position_embeddings", None)
    for path, module in model.named_modules():
        kind = type(module)
        build = _builder(module, config) if rebuilt else (lambda m=module: _copy(m))
        told = f"{kind.__name__} at {path}"
        if isinstance(module, nn.Embedding) and path.rpartition(".")[2] in LEARNED:
            rows, dim = module.weight.shape
            table = (lambda n=rows, d=dim: nn.Embedding(n, d)) if rebuilt else build
            yield Part(f"{path}", table, None, "added", rows)
        elif any(_alike(module, each) for each in seen):
            continue
        elif "RotaryEmbedding" in kind.__name__:
            seen.append(module)
            applied = applier_of(model, path)
            for part in _rotaries(module, told, build, getattr(module, "config", config), length):
                yield replace(part, applied=applied)
        elif getattr(module, "has_relative_attention_bias", False) and hasattr(
            module, "compute_bias"
        ):
            seen.append(module)
            yield Part(told, build, None, "bias", length)
        elif "PositionalEmbedding" in kind.__name__ or "PositionEmbedding" in kind.__name__:
            seen.append(module)
            yield Part(told, build, None, None, length)
    yield from _alibi(model, config)


def _alike(module: nn.Module, other: nn.Module) -> bool:
    """Whether a module is what another one is, as those of several layers are."""
    if type(module) is not type(other) or _plain(module) != _plain(other):
        return False
    if getattr(module, "config", None) != getattr(other, "config", None):
        return False
    mine, theirs = dict(module.named_buffers()), dict(other.named_buffers())
    return mine.keys() == theirs.keys() and all(_equal(x, theirs[n]) for n, x in mine.items())


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.is_meta or other.is_meta:
        return one.shape == other.shape
    return torch.equal(one.cpu(), other.cpu())


def _plain(module: nn.Module) -> dict[str, Any]:
    """The numbers and words that a module keeps, but for which layer it stands in."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, bool | int | float | str | tuple) and not name.startswith("layer_i")
    }


LEARNED = ("wpe", "position_embeddings", "embed_positions", "position_embedding")
"""What learned tables are called."""


def _rotaries(
    module: nn.Module, told: str, build: Callable[[], Any], config: Any, length: int | None
) -> Iterator[Part]:
    """One part, or one for each type of layers that the module is told of."""
    called = inspect.signature(module.forward).parameters
    types = dict.fromkeys(getattr(config, "layer_types", None) or ())
    if "layer_type" not in called:
        yield Part(told, build, config, "rotary", length)
        return
    for each in types:
        wrapped = lambda each=each: OfLayers(build(), each)  # noqa: E731
        yield Part(f"{told} of {each}", wrapped, (config, each), "rotary", length)


class OfLayers(nn.Module):
    """A rotary module that is told of which layers it is asked."""

    def __init__(self, wrapped: nn.Module, layer_type: str):
        super().__init__()
        self.wrapped, self.layer_type = wrapped, layer_type

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> Any:
        """Cosines and sines of these layers."""
        return self.wrapped(x, position_ids, self.layer_type)


def _copy(module: nn.Module) -> nn.Module:
    import copy

    return copy.deepcopy(module)


def _builder(module: nn.Module, config: Any) -> Callable[[], Any]:
    """Builds a part anew, with memory: from its configuration, or by the sizes that it has."""
    kind = type(module)
    parameters = inspect.signature(kind.__init__).parameters
    own = getattr(module, "config", config)

    def build() -> Any:
        named: dict[str, Any] = {}
        for name, parameter in list(parameters.items())[1:]:
            if name == "config":
                named[name] = own
            elif name == "has_relative_attention_bias":
                named[name] = True
            elif parameter.default is inspect.Parameter.empty or parameter.default is None:
                value = getattr(module, name, None)
                if value is not None and not isinstance(value, torch.Tensor | nn.Module):
                    named[name] = value
        return kind(**named)

    return build


def _alibi(model: nn.Module, config: Any) -> Iterator[Part]:
    """The function beside a model that builds its ALiBi."""
    module = inspect.getmodule(type(model))
    for name in ("build_alibi_tensor", "build_mpt_alibi_tensor"):
        function = getattr(module, name, None)
        if not callable(function) or getattr(config, "alibi", True) is False:
            continue
        heads = getattr(config, "num_attention_heads", None) or getattr(config, "n_heads", None)
        if isinstance(heads, int):
            bound = _alibi_of(function, heads)
            yield Part(f"{name} for {heads} heads", bound, None, "bias", None)


def _alibi_of(function: Callable[..., Any], heads: int) -> Callable[[], Any]:
    takes_mask = "attention_mask" in inspect.signature(function).parameters

    def build() -> Any:
        def bias(length: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            if not takes_mask:
                return function(heads, length)
            made = function(torch.ones(1, length), heads, dtype)
            return made.reshape(heads, 1, length)

        return bias

    return build


def expected(subject: Subject, config: Any) -> Rotary | None:
    """The rotary encoding that the configuration beside a subject means, where it is one of all."""
    from posenc.interop.rotary_config import rotary_from_config

    config, layer_type = _configuration_beside(subject, config)
    if config is None:
        return None
    try:
        found = rotary_from_config(config, layer_type=layer_type)
    except (ValueError, OSError):
        return None
    found = found.rotary if isinstance(found, MultimodalRotary) else found
    return found if isinstance(found, Rotary) else None


def expected_scale(subject: Subject) -> float | None:
    """What the configuration beside a subject says that scores are multiplied with."""
    from posenc.interop.rotary_config import softmax_scale_from_config

    config, layer_type = _configuration_beside(subject, None)
    if config is None:
        return None
    try:
        return softmax_scale_from_config(config, layer_type=layer_type)
    except (ValueError, OSError):
        return None


def _configuration_beside(subject: Subject, config: Any) -> tuple[Any, str | None]:
    """A configuration, and of which layers of it; None without one."""
    config = config if config is not None else getattr(subject.fresh(), "config", None)
    config, layer_type = config if isinstance(config, tuple) else (config, None)
    if not (_is_config(config) or isinstance(config, dict | str | Path)):
        return None, None
    return config, layer_type
