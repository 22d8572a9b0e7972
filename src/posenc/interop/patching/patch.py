"""Our rotary encoding inside a model of ``transformers``, and out of it again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from torch import nn

from posenc.interop.changes import Changes, Undoable
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration, check_length
from posenc.interop.oracle.encodings import bare
from posenc.interop.oracle.modules import TABLE, places_of
from posenc.interop.patching.admission import (
    GROWING,
    Admitted,
    Measurement,
    Unlike,
    Unread,
    admitted,
)
from posenc.interop.patching.angles import ExactAngles, ExactRows
from posenc.interop.patching.extension import Extension, by_type, extended
from posenc.interop.patching.telling import is_said, reach_of, told
from posenc.interop.rotary_config import RotaryLayer, layer_of
from posenc.interop.weights.models import check_turned

Layers = dict[str, RotaryLayer]
Ours = ExactAngles | ExactRows

ROWS = "posenc_rows"
"""What stands on attention whose table is ours."""

FAR = 2**20
"""Times a length: there every type that grows has grown."""


@dataclass(eq=False, repr=False)
class Patch(Undoable):
    """What ``patch`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        model: The model.
        angles: The modules that were put in; for attention that keeps a table of its own, what
            stands beside it.
        measurements: What was measured in each place before it was replaced.
        why_not: Why the configuration does not say the same; None where it does.
        left: Places that make angles of positions and were left alone, each with the reason.
    """

    model: nn.Module
    angles: list[Ours]
    measurements: tuple[Measurement, ...]
    why_not: str | None
    left: dict[str, str]

    @property
    def config_follows(self) -> bool:
        """Whether the configuration says the same: written, read back, and measured again."""
        return self.why_not is None

    def undo(self) -> None:
        """Put everything back, bit for bit."""
        unpatch(self.model)

    def __repr__(self) -> str:
        seen = dict.fromkeys(f"{m.path}: {m.form}" for m in self.measurements)
        for ours in dict.fromkeys(self.angles):
            if len(ours.rotaries) > 1:
                seen |= {f"{kind}: {_said(each)}": None for kind, each in ours.rotaries.items()}
        return f"Patch({', '.join(seen)}, config_follows={self.config_follows})"


def _said(rotation: Any) -> str:
    """The schedule of a rotation and its factor, as ``Linear × 8``."""
    schedule: Any = bare(rotation).frequencies
    factor = getattr(schedule, "factor", None)
    return type(schedule).__name__ + (f" × {factor:g}" if factor else "")


def patch(model: nn.Module, *, rotary: Extension | None = None, length: int | None = None) -> Patch:
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
        ValueError: It is patched already, what it gives is not what its configuration means, or
            ``rotary`` does not fit.

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
    if rotary is None:
        return replaced(model, None, length)
    return replaced(model, lambda found: extended(found, rotary, length), length, rotary)


def replaced(
    model: nn.Module,
    wanted: Callable[[Admitted], Layers] | None,
    length: int | None = None,
    given: Extension | None = None,
) -> Patch:
    """Put in what ``wanted`` makes of each place of the language model; None: what is there."""
    if list(_patched(model)):
        raise ValueError("The model is patched already. Undo that first, with unpatch(model).")
    named = _type_of(getattr(model, "config", None))
    found, left = _admitted(model, length, named)
    main = [each for each in found if each.config.model_type == named] or found
    # All is built before anything is changed, so that an error leaves the model as it was.
    pairs = [
        (each, dict(each.layers) if wanted is None or each not in main else wanted(each))
        for each in found
    ]
    changes, made = Changes(), list[Ours]()
    try:
        why = _told(model, [pair for pair in pairs if pair[0] in main], given, wanted, changes)
        for each, new in pairs:
            made.append(_put(each, new, made, length))
    except Exception:
        for each, ours in zip(found, made, strict=False):
            _take(each.place.parent, each.place.name, ours)
        changes.undo()
        raise
    made[0].changes = changes
    return Patch(model, made, tuple(m for each in found for m in each.measurements), why, left)


def _type_of(config: Any) -> str | None:
    """The type of the language model of a configuration; None where that does not say."""
    if isinstance(config, str | PathLike):
        return None  # of a module around the model
    try:
        return read(config).model_type
    except (ValueError, TypeError):
        return None


def _admitted(
    model: nn.Module, length: int | None, named: str | None
) -> tuple[list[Admitted], dict[str, str]]:
    """What was measured in all places, and why others are left alone."""
    found: list[Admitted] = []
    left: dict[str, str] = {}
    unread = False  # a place of the language model itself: no other part may stand for it
    for place in places_of(model):
        known = next((each for each in found if each.place.module is place.module), None)
        is_main = named is not None and _type_of(place.config) == named
        try:
            found.append(replace(known, place=place) if known else admitted(place, length))
        except (Unread, Unlike) as error:
            if isinstance(error, Unlike) and (named is None or is_main):
                raise
            left[place.path] = str(error)
            unread |= is_main
    if not found or unread:
        reasons = " ".join(f"{path}: {why}" for path, why in left.items())
        raise TypeError(
            f"Nothing in {type(model).__name__} can be patched. "
            f"{reasons or 'No rotary module that is known here takes position_ids.'}"
        )
    return found, left


def _told(
    model: nn.Module,
    places: list[tuple[Admitted, Layers]],
    given: Extension | None,
    wanted: object,
    changes: Changes,
) -> str | None:
    """Write each configuration once; why one says something else.

    Where nothing was extended, only those are written that mean something else than is there: the
    frequencies of the length that was stated.
    """
    why, distinct = None, {id(each.place.config): (each, new) for each, new in reversed(places)}
    for each, new in reversed(distinct.values()):
        if wanted is None and is_said(each, new):
            continue
        _rescale(model, each, new, changes)
        said = by_type(each, given) if isinstance(given, Mapping) else {}
        differing = told(model, each, new, said, changes)
        why = why or differing
    return why


def _rescale(model: nn.Module, found: Admitted, layers: Layers, changes: Changes) -> None:
    """Set the softmax scales of attention to those of the layers, as YaRN's in DeepSeek."""
    for kind, layer in layers.items():
        before, after = found.layers[kind].softmax_scale, layer.softmax_scale
        if abs(after - before) <= 1e-12 * abs(before):
            continue
        held = [
            (module, name)
            for module in model.modules()
            if getattr(module, "config", None) is found.place.config
            for name in ("scaling", "softmax_scale")
            if isinstance(scale := getattr(module, name, None), float)
            and abs(scale - before) <= 1e-6 * abs(before)
        ]
        if not held:
            raise ValueError(f"No attention of this model has the softmax scale {before:.6g}.")
        for module, name in held:
            changes.set(module, name, after)


def _reach_of(config: Configuration, layer: RotaryLayer, length: int | None) -> int | None:
    """From which position on the model itself would take other frequencies; None: from none."""
    longest = layer.rope.trained_length or layer.rope.longest
    if layer.rope.kind not in GROWING or longest is None:
        return None

    def at(n: int | None) -> str:
        return repr(layer_of(config, layer.layer_type, layer.rope, n).encoding)

    held, reach = repr(layer.encoding), max(length or 0, longest)
    return reach if at(length) == held != at(FAR * reach) else None


def _put(found: Admitted, layers: Layers, made: list[Ours], length: int | None) -> Ours:
    """Put ours in one place."""
    place = found.place
    rotaries = {kind: layer.encoding for kind, layer in layers.items()}
    if place.keeps_rows:
        rows = ExactRows(rotaries, place.module._buffers[TABLE])  # type: ignore[arg-type]
        place.module._buffers[TABLE] = rows.table(max(reach_of(layers), length or 0))
        vars(place.module)[ROWS] = rows
        return rows
    same = (x for x in made if isinstance(x, ExactAngles) and x.replaced is place.module)
    if (angles := next(same, None)) is None:
        angles = ExactAngles(rotaries, found.form, place.module, place.config, found.dtype)
        reaches = {kind: _reach_of(found.config, each, length) for kind, each in layers.items()}
        angles.reach = {kind: reach for kind, reach in reaches.items() if reach is not None}
    place.parent._modules[place.name] = angles
    return angles


def _patched(model: nn.Module) -> Iterator[tuple[nn.Module, str, Ours]]:
    """What holds ours, its name there, and ours."""
    for parent in model.modules():
        for name, module in parent._modules.items():
            ours = module if isinstance(module, ExactAngles) else getattr(module, ROWS, None)
            if ours is not None:
                yield parent, name, ours


def _take(parent: nn.Module, name: str, ours: Ours) -> None:
    """Take ours out of one place."""
    if ours.changes:
        ours.changes.undo()
    if isinstance(ours, ExactAngles):
        device = next((x.device for x in (*parent.parameters(), *parent.buffers())), None)
        parent._modules[name] = ours.replaced.to(device)  # type: ignore[attr-defined]
        return
    module = parent.get_submodule(name)
    module._buffers[TABLE] = ours.before.to(next(module.parameters()).device)
    del vars(module)[ROWS]


def unpatch(model: nn.Module) -> None:
    """Take our encoding out again; model and configuration are what they were."""
    patched = list(_patched(model))
    if not patched:
        raise ValueError("The model is not patched; there is nothing to undo.")
    for parent, name, ours in patched:
        _take(parent, name, ours)
