"""Our rotary encoding inside a model of ``transformers``, and out of it again."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule
from posenc.interop.configurations import read
from posenc.interop.rope_dictionary import rope_dictionary
from posenc.interop.rope_layers import checked
from posenc.interop.rotary_config import layers_by_type
from posenc.transformer.tables import Tables

SUPPORTED = frozenset(
    {
        "gemma",
        "gemma2",
        "gemma3_text",
        "gpt_neox",
        "llama",
        "mistral",
        "phi",
        "phi3",
        "qwen2",
        "qwen3",
        "stablelm",
    }
)
"""Models whose rotary module is ``rotary_emb(x, position_ids[, layer_type])`` and whose attention
turns halves: pairs of channels i and i + width/2."""

Extension = Rotary | Schedule | Mapping[str, Rotary | Schedule]


class ExactAngles(nn.Module):
    """Stands where a model has its rotary module, and gives cos and sin of exact phases.

    It owns no tensors: no cast, checkpoint or meta device can damage it. Rows are kept visibly in
    ``tables``, outside of the state dict, and gathered by position.

    Attributes:
        rotaries: One encoding for all layers (under ``"all"``), or one a layer type.
        tables: The kept rows.
        replaced: The module that stood here before; no part of this one.
        parameters_before: What the configuration said of positions before.
    """

    def __init__(self, rotaries: Mapping[str, Rotary], replaced: nn.Module):
        super().__init__()
        self.rotaries = nn.ModuleDict(rotaries)
        self.tables = Tables()
        # Past nn.Module's bookkeeping: its buffers must not be cast or saved with ours.
        object.__setattr__(self, "replaced", replaced)
        self.config: Any = replaced.config
        self.parameters_before: Any = None

    @torch.no_grad()
    def forward(
        self,
        x: Float[Tensor, "batch seq dim"],
        position_ids: Int64[Tensor, "rows seq"],
        layer_type: str | None = None,
    ) -> tuple[Float[Tensor, "rows seq width"], Float[Tensor, "rows seq width"]]:
        """cos and sin for both halves of the rotated width, in the dtype of ``x``, rounded once."""
        rotary = self.rotaries["all" if "all" in self.rotaries else str(layer_type)]
        table = self.tables.rows(rotary, position_ids, dtype=x.dtype)  # type: ignore[arg-type]
        cos, sin = table.unbind(-2)
        return torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)


class Patch:
    """What ``patch`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        angles: The modules that were put in.
        config_follows: Whether the configuration says the same, so that a saved model means it.
    """

    def __init__(self, model: nn.Module, angles: list[ExactAngles], config_follows: bool):
        self.model, self.angles, self.config_follows = model, angles, config_follows

    def undo(self) -> None:
        """Put everything back, bit for bit."""
        unpatch(self.model)

    def __enter__(self) -> "Patch":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def patch(model: nn.Module, *, rotary: Extension | None = None, length: int | None = None) -> Patch:
    """Put our rotary encoding into a loaded model, in place, with its context or a longer one.

    Angles are exact at any position and rounded once, to the model's dtype, in which the model
    applies them. Generation with caches, left padding, ``torch.compile``, training, casts and
    saving go on as before; the state dict stays as it is. Undo it with ``undo()``, with
    ``unpatch(model)``, or by leaving a ``with`` block.

    With ``rotary`` the context is extended: the configuration is changed to say the same where it
    can (``Patch.config_follows``), so that the model, saved and loaded, keeps its meaning.

    Args:
        model: Llama, Mistral, Qwen 2 and 3, GPT-NeoX, Gemma 1 to 3, Phi 1 to 3 or StableLM, with a
            head or without.
        rotary: Another encoding: a ``Rotary``, a schedule, or one of them for each layer type
            (those that are left out stay). If not given, what the configuration says.
        length: Length of the sequences, for the types that depend on it (dynamic, longrope), which
            ``transformers`` switches by the longest row it has seen. It is stated here once.

    Raises:
        TypeError: The model is of no supported family.
        ValueError: It is patched already, or ``rotary`` does not fit its heads.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> from posenc.frequencies import Geometric, YaRN
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaForCausalLM(config).eval(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> with patch(model, rotary=YaRN(Geometric(16), factor=4.0, trained_length=2048)):
        ...     longer = model(ids).logits
        >>> torch.equal(model(ids).logits, before), torch.equal(longer, before)
        (True, False)
    """
    places = list(_places(model))
    if not places:
        raise TypeError(
            f"{type(model).__name__} has no rotary module that is known here. Supported model "
            f"types: {', '.join(sorted(SUPPORTED))}."
        )
    if any(isinstance(module, ExactAngles) for _, module in places):
        raise ValueError("The model is patched already. Undo that first, with unpatch(model).")
    # All is built before anything is changed, so that an error leaves the model as it was.
    made = [_angles(module, rotary, length) for _, module in places]
    follows = True
    for (parent, _), angles in zip(places, made, strict=True):
        if rotary is not None:
            follows &= _tell(angles)
        parent.add_module("rotary_emb", angles)
    return Patch(model, made, follows)


def unpatch(model: nn.Module) -> None:
    """Take our encoding out again; model and configuration are what they were.

    Raises:
        ValueError: The model is not patched.
    """
    patched = [(p, m) for p, m in _places(model) if isinstance(m, ExactAngles)]
    if not patched:
        raise ValueError("The model is not patched; there is nothing to undo.")
    for parent, angles in patched:
        if angles.parameters_before is not None:
            config: Any = angles.config
            config.rope_parameters = angles.parameters_before
        before: Any = angles.replaced
        device = next((p.device for p in parent.parameters()), None)
        parent.add_module("rotary_emb", before if device is None else before.to(device))


def rotary_modules(model: nn.Module) -> list[Any]:
    """The rotary modules of a model that are known, ours where it is patched."""
    return [module for _, module in _places(model)]


def _places(model: nn.Module) -> Iterator[tuple[nn.Module, nn.Module]]:
    """Each module with a rotary module that is known, and that."""
    for parent in model.modules():
        module = parent._modules.get("rotary_emb")
        config = getattr(module, "config", None)
        if module is not None and getattr(config, "model_type", None) in SUPPORTED:
            yield parent, module


def _angles(module: nn.Module, rotary: Extension | None, length: int | None) -> ExactAngles:
    layers = layers_by_type(checked(read(module.config)), length)
    theirs = {kind or "all": layer.encoding for kind, layer in layers.items()}
    wanted = {} if rotary is None else dict(rotary) if isinstance(rotary, Mapping) else (
        dict.fromkeys(theirs, rotary)
    )  # fmt: skip
    if unknown := sorted(wanted.keys() - theirs.keys()):
        raise ValueError(
            f"rotary is given for layers of type {', '.join(unknown)}; this model has "
            f"{', '.join(sorted(theirs))}. Use these names."
        )
    ours = {kind: _fitting(wanted.get(kind, own), own) for kind, own in theirs.items()}
    return ExactAngles(ours, module)


def _fitting(wanted: object, own: object) -> Rotary:
    """The encoding that is wanted, built for the heads of the model."""
    assert isinstance(own, Rotary)
    if isinstance(wanted, Schedule):
        wanted = Rotary(wanted, head_dim=own.head_dim)
    if not isinstance(wanted, Rotary):
        raise TypeError(
            f"rotary is a {type(wanted).__name__}; it must be a Rotary, a schedule, or a mapping "
            f"from layer types to one."
        )
    facts = [(w.rotated_dim, w.head_dim, w.pairing, w.rotated) for w in (wanted, own)]
    if facts[0] != facts[1]:
        raise ValueError(
            f"rotary is {wanted}; this model turns {own.rotated_dim} of {own.head_dim} channels in "
            f"pairs of halves. Build it with a schedule of width {own.rotated_dim} and pairing "
            f"'half'."
        )
    return wanted


def _tell(angles: ExactAngles) -> bool:
    """Write the encodings into the configuration; whether it can say them."""
    config: Any = angles.config
    said = {}
    for kind, rotary in angles.rotaries.items():
        assert isinstance(rotary, Rotary)
        said[kind] = rope_dictionary(rotary.frequencies, rotary.head_dim)
    if None in said.values():
        return False
    angles.parameters_before = config.rope_parameters
    config.rope_parameters = said["all"] if set(said) == {"all"} else said
    return True
