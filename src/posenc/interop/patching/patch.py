"""Our rotary encoding inside a model of ``transformers``, and out of it again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from torch import nn

from posenc.interop.configurations import check_length, read
from posenc.interop.patching.admission import Admitted, Unlike, Unread, admitted
from posenc.interop.patching.angles import ALL, Changes, ExactAngles
from posenc.interop.patching.extension import Extension, extended, is_dictionary
from posenc.interop.patching.measuring import Measurement
from posenc.interop.patching.places import (
    TABLE,
    exact_rows_of,
    is_patched,
    places_of,
)
from posenc.interop.patching.reach import reach_of
from posenc.interop.patching.replacing import Layers, Ours, confirm, put, take
from posenc.interop.patching.scales import rescaled
from posenc.interop.patching.telling import is_said, restore, told
from posenc.interop.weights.models import check_turned


class Patch:
    """What ``patch`` did, and how to undo it; as a context manager it undoes itself.

    Attributes:
        angles: The modules that were put in; for attention that keeps a table of its own, the
            hook before it.
        measurements: What was measured in each place before it was replaced.
        config_follows: Whether the configuration says the same: it was written, read back to the
            same set-up, and the model's own class, built from it, gave the same angles.
        why_not: If not, why.
        left: Places that make angles of positions and were left alone, each with the reason.
    """

    def __init__(
        self,
        model: nn.Module,
        angles: list[Ours],
        measurements: tuple[Measurement, ...],
        why_not: str | None,
        left: Mapping[str, str],
    ):
        self.model, self.angles, self.measurements = model, angles, measurements
        self.config_follows, self.why_not, self.left = why_not is None, why_not, dict(left)

    def undo(self) -> None:
        """Put everything back, bit for bit."""
        unpatch(self.model)

    def __enter__(self) -> "Patch":
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        seen = ", ".join(f"{m.path}: {m.form}" for m in self.measurements)
        return f"Patch({seen}, config_follows={self.config_follows})"


def patch(model: nn.Module, *, rotary: Extension | None = None, length: int | None = None) -> Patch:
    """Put our rotary encoding into a loaded model, in place, with its context or a longer one.

    No list of names decides which models: each module that makes angles of positions is asked for
    several near and far ones, for each type of layers, and it is replaced if it gives what its
    configuration means, in one of the known forms (``posenc.interop.patching.forms``). A model
    whose text gives something else is refused with what was measured. Towers of other kinds (of
    images, say) stay as they are, and are told in ``Patch.left``.

    Angles are exact at any position and rounded once, to the model's dtype, in which the model
    applies them. Generation with caches, left padding, ``torch.compile``, training, casts and
    saving go on as before; the state dict stays as it is. Undo it with ``undo()``, with
    ``unpatch(model)``, or by leaving a ``with`` block.

    With ``rotary`` the context is extended, with ``length`` that of a type that depends on it: the
    configuration is changed to say the same where it can (``Patch.config_follows``), so that the
    model, saved and loaded, keeps its meaning.

    Args:
        model: A model of transformers, with a head or without.
        rotary: Another encoding: a ``Rotary``, a schedule, a rope dictionary as Hugging Face
            writes it (the base, sections of axes and the trained length stay where it leaves them
            out; other keys of an old type do not), or a mapping from types of layers to these
            (those that are left out stay). If not given, what the configuration says. In
            a model of several parts it is for the language model.
        length: Length of the sequences, for the types that depend on it (dynamic, longrope), which
            ``transformers`` switches by the longest row it has seen. It is stated here once; the
            trained length if not given. Positions further than that raise a ValueError when the
            model runs (in a compiled graph a RuntimeError).

    Raises:
        TypeError: Nothing in the model makes angles of positions as is known here.
        ValueError: It is patched already, what it gives is not what its configuration means,
            ``rotary`` does not fit its heads, ``length`` is no whole number from 1 on, or its
            weights were converted (``convert_pairing``) and it was loaded without their rotation.

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

    def wanted(found: Admitted) -> Layers:
        return extended(found, rotary, length)

    given = rotary if isinstance(rotary, Mapping) else {}
    said: Mapping[str, Any] = {ALL: given} if is_dictionary(given) else given
    return replaced(model, None if rotary is None else wanted, length, said)


def replaced(
    model: nn.Module,
    wanted: Callable[[Admitted], Layers] | None,
    length: int | None = None,
    given: Mapping[str, Any] | None = None,
) -> Patch:
    """Put in what ``wanted`` makes of each place of the language model; None: what is there.

    Raises:
        TypeError, ValueError: As of ``patch``.
    """
    named = _type_of(getattr(model, "config", None))
    found, left = _admitted(model, length, named)
    main = [each for each in found if each.config.model_type == named] or found
    # All is built before anything is changed, so that an error leaves the model as it was.
    layers = [
        dict(each.layers) if wanted is None or each not in main else wanted(each) for each in found
    ]
    changes: Changes = []
    made: list[Ours] = []
    why: str | None = None
    try:
        changes, why = _told(model, found, layers, main, given or {}, wanted is not None)
        for each, new in zip(found, layers, strict=True):
            made.append(put(each, new, made))
        made[0].changes = changes
        for each, new in zip(found, layers, strict=True):
            confirm(each, new)
        for each, new, ours in zip(found, layers, made, strict=True):
            if isinstance(ours, ExactAngles):  # those of tables are of no type that grows
                reaches = {
                    kind: reach_of(each.config, layer, length) for kind, layer in new.items()
                }
                ours.reach = {kind: n for kind, n in reaches.items() if n is not None}
    except Exception:
        restore(changes)
        for each, angles in zip(found, made, strict=False):
            angles.changes = []
            take(each.place, angles)
        raise
    seen = tuple(m for each in found for m in each.measurements)
    return Patch(model, made, seen, why, left)


def _type_of(config: Any) -> str | None:
    """The type of the language model of a configuration; None where that does not say."""
    if isinstance(config, str | PathLike):
        return None  # what a module around the model calls so; the model has read its own file
    try:
        return read(config).model_type
    except (ValueError, TypeError):
        return None


def _admitted(
    model: nn.Module, length: int | None, named: str | None
) -> tuple[list[Admitted], dict[str, str]]:
    """What was measured in all places, and why others are left alone."""
    places = list(places_of(model))
    if any(is_patched(place) for place in places):
        raise ValueError("The model is patched already. Undo that first, with unpatch(model).")
    found: list[Admitted] = []
    left: dict[str, str] = {}
    unread = False  # a place of the language model itself: no other part may stand for it
    for place in places:
        known = next((each for each in found if each.place.module is place.module), None)
        try:
            found.append(replace(known, place=place) if known else admitted(place, length))
        except Unread as error:
            left[place.path] = str(error)
            unread |= named is not None and _type_of(place.config) == named
        except Unlike as error:
            if named is None or _type_of(place.config) == named:
                raise
            left[place.path] = str(error)
    if not found or unread:
        reasons = " ".join(f"{path}: {why}" for path, why in left.items())
        raise TypeError(
            f"Nothing in {type(model).__name__} can be patched. {reasons}"
            if left
            else f"{type(model).__name__} has no rotary module that is known here: none that makes "
            f"angles of position_ids, and no attention with a table {TABLE}. Rotate its queries "
            f"and keys with posenc.Rotary in its code."
        )
    return found, left


def _told(
    model: nn.Module,
    found: list[Admitted],
    layers: list[Layers],
    main: list[Admitted],
    given: Mapping[str, Any],
    is_extended: bool,
) -> tuple[Changes, str | None]:
    """Write each configuration once; what was changed, and why one says something else.

    Where nothing was extended, those alone are written that mean something else than is there: the
    frequencies of the length that was stated.
    """
    changes: Changes = []
    done: list[Any] = []
    why = None
    try:
        for each, new in zip(found, layers, strict=True):
            if each not in main or any(each.place.config is other for other in done):
                continue
            if not is_extended and is_said(each, new):
                continue
            done.append(each.place.config)
            changes += rescaled(model, each, new)
            more, differing = told(model, each, new, given)
            changes += more
            why = why or differing
    except Exception:
        restore(changes)
        raise
    return changes, why


def unpatch(model: nn.Module) -> None:
    """Take our encoding out again; model and configuration are what they were.

    Raises:
        ValueError: The model is not patched.
    """
    patched = [place for place in places_of(model) if is_patched(place)]
    if not patched:
        raise ValueError("The model is not patched; there is nothing to undo.")
    for place in patched:
        angles = place.module
        take(place, angles if isinstance(angles, ExactAngles) else exact_rows_of(angles))
