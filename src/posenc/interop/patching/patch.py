"""Our rotary encoding inside a model of ``transformers``, and out of it again."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import isclose
from typing import Any

import torch
from torch import nn

from posenc.interop.changes import Changes, Undoable, undo_kept
from posenc.interop.configurations import read
from posenc.interop.fields import check_length
from posenc.interop.oracle.encodings import bare
from posenc.interop.patching.admission import GROWING, Admitted, Measurement, Unlike, admitted
from posenc.interop.patching.modules import TABLE, ExactAngles, places_of
from posenc.interop.patching.telling import Layers, stretched_length, told
from posenc.interop.patching.wanted import Wanted, extended, stilled
from posenc.interop.rotary_config import RotaryLayer, layer_of
from posenc.interop.weights.models import check_turned

HELD = "posenc_rotary"
"""Where a patched model keeps its changes."""


@dataclass(eq=False, repr=False)
class Patch(Undoable):
    """What ``patch`` did, and how to undo it; as a context manager it undoes itself."""

    model: nn.Module
    #: That were put in; for attention that keeps a table of its own, what filled that.
    angles: list[ExactAngles]
    measurements: tuple[Measurement, ...]  #: of each place before it was replaced
    why_not: str | None  #: why the configuration does not say the same; None where it does
    left: dict[str, str]  #: places that make angles and were left alone, each with the reason

    @property
    def config_follows(self) -> bool:
        """Whether the configuration says the same: written, read back, and measured again."""
        return self.why_not is None

    def undo(self) -> None:
        """Put everything back, bit for bit."""
        unpatch(self.model)

    def __repr__(self) -> str:
        seen = dict.fromkeys(f"{m.path}: {m.form}" for m in self.measurements)
        several = [each.rotaries.items() for each in self.angles if len(each.rotaries) > 1]
        for kind, rotary in chain.from_iterable(several):
            schedule: Any = bare(rotary).frequencies  # type: ignore[arg-type]
            factor = getattr(schedule, "factor", None)
            times = f" × {factor:g}" if factor else ""
            seen[f"{kind}: {type(schedule).__name__}{times}"] = None
        return f"Patch({', '.join(seen)}, config_follows={self.config_follows})"


def patch(model: nn.Module, *, rotary: Wanted | None = None, length: int | None = None) -> Patch:
    """Put our rotary encoding into a loaded model, in place, with its context or a longer one.

    Each module that makes angles of positions is measured at near and far positions. It is replaced
    if it gives what its configuration means. Towers of images and the like stay; see
    ``Patch.left``.

    Angles are exact at any position and rounded once, to the dtype in which the model applies
    them. Caches, left padding, ``torch.compile``, training, casts and saving work as before; the
    state dict stays as it is. Undo it with ``undo()``, ``unpatch(model)``, or by leaving a ``with``
    block.

    With ``rotary`` or ``length``, the configuration is changed to say the same where it can
    (``Patch.config_follows``), so that the model, saved and loaded, keeps its meaning.

    Args:
        model: A model of transformers, with a head or without.
        rotary: Another encoding for the language model: a ``Rotary``, a schedule, a rope dictionary
            of Hugging Face, or a mapping from layer types to these. Types that are left out stay. A
            dictionary is for the layers to which the configuration's class hands it; the base,
            sections of axes and the trained length stay where it leaves them out.
        length: Length of the sequences, for the types that depend on it (dynamic, longrope); the
            trained length if not given. Positions further than that raise a ValueError when the
            model runs (in a compiled graph a RuntimeError). For GPT-J and CodeGen, the least number
            of rows in their tables.

    Raises:
        TypeError: Nothing in the model makes angles of positions as is known here.
        ValueError: It is patched already, its configuration cannot be read or means something else
            than it gives, or ``rotary`` does not fit.

    Example:
        >>> import torch
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=99, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaForCausalLM(config).eval(), torch.arange(9)[None]
        >>> before = model(ids).logits
        >>> with patch(model, rotary={"rope_type": "yarn", "factor": 4.0}):
        ...     longer = model(ids).logits
        >>> torch.equal(model(ids).logits, before), torch.equal(longer, before)
        (True, False)
    """
    check_length(length)
    check_turned(model)
    return _replaced(model, lambda found: extended(found, rotary, length), length)


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
    return _replaced(model, stilled)


def unpatch(model: nn.Module) -> None:
    """Take our encoding out again; model and configuration are what they were."""
    undo_kept(model, HELD)


def _replaced(
    model: nn.Module, wanted: Callable[[Admitted], Layers], length: int | None = None
) -> Patch:
    """Put in what ``wanted`` makes of each place of the language model."""
    if any(HELD in vars(module) for module in model.modules()):
        raise ValueError("The model is patched already. Undo that first, with unpatch(model).")
    kind = _type_of(getattr(model, "config", None))
    found, left = _admitted(model, kind, length)
    main = [each for each in found if each.config.model_type == kind] or found
    # All is built before anything is changed, so that an error leaves the model as it was.
    pairs = [(each, wanted(each) if each in main else each.layers) for each in found]
    by_config = {id(each.place.config): (each, new) for each, new in pairs if each in main}
    changes, why = Changes(), None
    try:
        for each, layers in by_config.values():
            _rescale(model, each, layers, changes)
            why = told(model, each, layers, changes) or why
        angles = [_put(each, layers, length, changes) for each, layers in pairs]
    except Exception:
        changes.undo()
        raise
    vars(model)[HELD] = changes
    return Patch(model, angles, tuple(m for each in found for m in each.measurements), why, left)


def _type_of(config: Any) -> str | None:
    """The type of the language model of a configuration; None where that does not say."""
    try:
        return read(config).model_type
    except (ValueError, TypeError, OSError):
        return None


def _admitted(
    model: nn.Module, kind: str | None, length: int | None
) -> tuple[list[Admitted], dict[str, str]]:
    """What was measured in all places, and why others than the language model's are left alone."""
    found: list[Admitted] = []
    left: dict[str, str] = {}
    for place in places_of(model):
        try:
            found.append(admitted(place, length))
        except Unlike as error:
            if _type_of(place.config) == kind:
                raise  # of the language model itself: no other part may stand for it
            left[place.path] = str(error)
    if not found:
        why = " ".join(left.values()) or "No rotary module that is known here takes position_ids."
        raise TypeError(f"Nothing in {type(model).__name__} can be patched. {why}")
    return found, left


def _rescale(model: nn.Module, found: Admitted, layers: Layers, changes: Changes) -> None:
    """Set the softmax scales of attention to those of the layers, as YaRN's in DeepSeek."""
    for kind, layer in layers.items():
        before, after = found.layers[kind].softmax_scale, layer.softmax_scale
        if isclose(after, before, rel_tol=1e-12):
            continue
        held = [
            (module, name)
            for module in model.modules()
            if getattr(module, "config", None) is found.place.config
            for name in ("scaling", "softmax_scale")
            if isinstance(scale := getattr(module, name, None), float)
            and isclose(scale, before, rel_tol=1e-6)
        ]
        if not held:
            raise ValueError(f"No attention of this model has the softmax scale {before:.6g}.")
        for module, name in held:
            changes.set(module, name, after)


def _put(found: Admitted, layers: Layers, length: int | None, changes: Changes) -> ExactAngles:
    """Put ours in one place."""
    place = found.place
    angles = ExactAngles(
        {kind: layer.encoding for kind, layer in layers.items()},
        found.measurements[0].form,
        place.module,
        place.config,
        found.dtype,
        {kind: _holds_until(found, each, length) for kind, each in layers.items()},
    )
    if place.keeps_rows:
        before: Any = place.module._buffers[TABLE]
        rows = max(stretched_length(layers), length or 0, len(before))
        table = angles(before, torch.arange(rows, device=before.device))
        changes.set(place.module, TABLE, table)
    else:
        changes.set(place.parent, place.name, angles)
    return angles


def _holds_until(found: Admitted, layer: RotaryLayer, length: int | None) -> int | None:
    """From which position on the model itself would take other frequencies; None: from none."""
    longest = layer.rope.trained_length or layer.rope.longest
    if layer.rope.kind not in GROWING or longest is None:
        return None

    def at(n: int | None) -> str:
        return repr(layer_of(found.config, layer.layer_type, layer.rope, n).encoding)

    reach = max(length or 0, longest)
    far = 2**20 * reach  # where every type that grows has grown
    return reach if at(length) == repr(layer.encoding) != at(far) else None
