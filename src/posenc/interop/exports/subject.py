"""The layers of one model, as targets of an export ask for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Geometric, Schedule
from posenc.interop.configurations import (
    Configuration,
    check_length,
    missing_parts,
    parts_of,
    read,
    read_whole,
    standing,
)
from posenc.interop.rope_layers import of_its_own_code
from posenc.interop.rope_models import LATENT_SOFTMAX, pairing_of_code
from posenc.interop.setup import LayerSetup, Part
from posenc.interop.setup_reading import positional_setup
from posenc.interop.unheeded import check_unheeded


def refuse(target: str, what: str, instead: str) -> NoReturn:
    """Say that a target cannot express something.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{target} cannot express this model: {what}. {instead}")


FAR = 2**40
"""A length beyond that of any model."""


def depends_on_length(config: Any | dict[str, Any] | str | Path) -> bool:
    """Whether some frequencies of a model depend on the length of the sequences.

    Raises:
        ValueError: As ``positional_setup`` does.
        OSError: The file cannot be read.

    Example:
        >>> depends_on_length({"model_type": "llama"})
        False
        >>> rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
        >>> depends_on_length({"model_type": "llama", "rope_parameters": rope})
        True
    """
    short, long = (repr(positional_setup(config, length=length)) for length in (1, FAR))
    return short != long


def check_reach(
    config: Any | dict[str, Any] | str | Path, *, longest: int, length: int | None
) -> None:
    """Refuse a table that goes past the sequences that its frequencies are for.

    Raises:
        ValueError: In sequences of ``longest`` tokens the model has other frequencies.

    Example:
        >>> check_reach({"model_type": "llama"}, longest=10**6, length=None)
    """
    check_length(length)
    if longest <= (length or 0):
        return
    told, there = (repr(positional_setup(config, length=each)) for each in (length, longest))
    if told != there:
        meant = "short sequences (no length is told)" if length is None else f"length {length}"
        raise ValueError(
            f"The frequencies of this model depend on the length, and those of {meant} do not "
            f"hold for a table of {longest} positions. Pass length={longest}, or a smaller longest."
        )


def only_part(
    config: Any | dict[str, Any] | str | Path,
    target: str,
    *,
    part: str | None = None,
    length: int | None = None,
) -> Part:
    """The one part of a configuration that a target has room for: the only one, or that named.

    Raises:
        ValueError: There are several, none of this name, what its layers do is not known, or its
            fields stand where the class of the model does not look for them.
    """
    parts = positional_setup(config, length=length).parts
    names = ", ".join(each.name for each in parts)
    if part is None and len(parts) > 1:
        refuse(target, f"it has the parts {names}", "Name one, or pass its configuration alone.")
    named = [each for each in parts if part in (None, each.name)]
    if not named:
        raise ValueError(f"There is no part {part!r}; this model has {names}. Choose one of these.")
    first = named[0]
    if first.strays:
        (stand, _, them), missing = standing(first.strays), missing_parts(read_whole(config))
        refuse(
            target,
            f"{stand} beside a missing {missing}, where its class does not look for {them}",
            f"Write {them} into {missing}, or take {them} out if the defaults are meant.",
        )
    if not first.layers or any(layer.positional is None for layer in first.layers):
        refuse(
            target,
            f"no encoding of the library says what {first.model_type} does",
            "See posenc inspect.",
        )
    return first


def fields_of_only_part(config: Any | dict[str, Any] | str | Path) -> tuple[str, ...]:
    """The fields that lead to the part of a configuration that has but one.

    Example:
        >>> fields_of_only_part({"model_type": "fuyu", "text_config": {"model_type": "persimmon"}})
        ('text_config',)
        >>> fields_of_only_part({"model_type": "llama"})
        ()
    """
    inner, fields = read_whole(config), []
    while nested := parts_of(inner):
        ((field, inner),) = nested.items()  # with several, or one beside its own, there are more
        fields.append(field)
    return tuple(fields)


@dataclass(frozen=True)
class RotatingModel:
    """A model that does nothing with positions but rotate queries and keys.

    Attributes:
        model_type: As the configuration names it.
        layers: What each layer does.
        rotations: The rotation of each layer; None for layers without.
        target: Where it goes, for messages.
    """

    model_type: str
    layers: tuple[LayerSetup, ...]
    rotations: tuple[Rotary | MultimodalRotary | None, ...]
    target: str

    @property
    def kinds(self) -> list[tuple[str | None, Rotary | MultimodalRotary]]:
        """Each rotation once, with the type of the first layer that has it.

        Layers of one type may differ, where a file speaks of each.
        """
        found: dict[str, tuple[str | None, Rotary | MultimodalRotary]] = {}
        for layer, rotation in zip(self.layers, self.rotations, strict=True):
            if rotation is not None:
                found.setdefault(repr(rotation), (layer.layer_type, rotation))
        return list(found.values())

    @property
    def skips(self) -> bool:
        """Whether some layers do not rotate."""
        return None in self.rotations

    def layer_of(self, rotation: Rotary | MultimodalRotary) -> LayerSetup:
        """The first layer with this rotation."""
        return self.layers[[repr(r) for r in self.rotations].index(repr(rotation))]

    def only(self, unturned: Sequence[int] = ()) -> Rotary:
        """The one rotation of all layers, but for those that the target leaves unturned by itself.

        Raises:
            ValueError: Layers differ, others do not rotate, or pairs belong to several axes.
        """
        if len(self.kinds) > 1:
            told = ", ".join(str(kind) for kind, _ in self.kinds)
            refuse(self.target, f"layers of types {told} rotate differently", "Nothing does.")
        skipped = [index for index, each in enumerate(self.rotations) if each is None]
        if unturned and skipped != list(unturned):
            refuse(
                self.target,
                f"the layers that do not rotate are {skipped or 'none'}",
                f"The program that reads it leaves layers {list(unturned)} unturned, from 0.",
            )
        if skipped and not unturned:
            refuse(
                self.target,
                f"{len(skipped)} of its {len(self.rotations)} layers do not rotate",
                "The program that reads it must know that of itself.",
            )
        return self.plain(self.kinds[0][1])

    def plain(self, rotation: Rotary | MultimodalRotary) -> Rotary:
        """The rotation, where it is by one position a token.

        Raises:
            ValueError: It is by several.
        """
        if isinstance(rotation, MultimodalRotary):
            refuse(
                self.target,
                f"its pairs are shared out among axes by {rotation.sections}",
                "Export rotation.rotary for text alone, where all axes are equal.",
            )
        return rotation


def rotating_model(
    config: Any | dict[str, Any] | str | Path,
    target: str,
    *,
    part: str | None = None,
    length: int | None = None,
) -> RotatingModel:
    """The layers of a model that rotates and does nothing else with positions.

    Raises:
        ValueError: It has several parts, does not rotate, does something besides, or has numbers of
            a rotation that are not read.
    """
    chosen = only_part(config, target, part=part, length=length)
    if chosen.name == "text":
        check_unheeded(of_its_own_code(read(config)), length)
    rotations = tuple(_rotation(layer, target) for layer in chosen.layers)
    if not any(rotations):
        refuse(target, "none of its layers rotates queries and keys", "Export arrays (npz).")
    return RotatingModel(chosen.model_type, chosen.layers, rotations, target)


def _rotation(layer: LayerSetup, target: str) -> Rotary | MultimodalRotary | None:
    positional = layer.positional
    assert positional is not None
    entries = [*positional.tokens, *positional.queries_keys, *positional.scores]
    rest = [entry for entry in entries if not isinstance(entry, Rotary | MultimodalRotary)]
    if rest:
        refuse(target, f"it has {rest[0]!r} besides a rotation", "Export arrays (npz).")
    if len(entries) > 1:
        refuse(target, "a layer rotates twice", "Nothing does.")
    return entries[0] if entries else None  # type: ignore[return-value]


def check_alone(model: RotatingModel, rotary: Rotary) -> None:
    """Refuse what no dictionary of frequencies tells: a softmax factor, heads in two parts, and
    powers over an odd width.

    Raises:
        ValueError: There is one.
    """
    heeded = Configuration({}, model.model_type).family in LATENT_SOFTMAX
    if heeded and rotary.frequencies.softmax_factor != 1.0:
        refuse(
            model.target,
            f"its softmax scale is multiplied with {rotary.frequencies.softmax_factor}",
            "The program works that out by itself for the families that it knows.",
        )
    if rotary.rotated == "suffix":
        refuse(
            model.target,
            "its heads rotate the last channels alone",
            "The program lays out multi-head latent attention by itself.",
        )
    powers = powers_under(rotary.frequencies)
    if powers is not None and powers.dim % 2:
        refuse(
            model.target,
            f"its frequencies are powers over an odd width, {powers!r}",
            f"The program would take them over the {rotary.rotated_dim} channels that turn. "
            "Export arrays (npz).",
        )


def powers_under(schedule: Schedule) -> Geometric | None:
    """The powers of a base that a schedule is made of, if it is."""
    inner: Any = schedule
    while not isinstance(inner, Geometric) and hasattr(inner, "of"):
        inner = inner.of
    return inner if isinstance(inner, Geometric) else None


def check_pairing(model: RotatingModel, rotary: Rotary) -> None:
    """Refuse weights in another pairing than that of the model's code, which no key tells.

    Raises:
        ValueError: They were converted.
    """
    own = pairing_of_code(Configuration({}, model.model_type))
    if rotary.pairing != own:
        refuse(
            model.target,
            f"its weights were converted to the pairing {rotary.pairing!r}",
            f"The program takes them in that of {model.model_type}, {own!r}: convert them back.",
        )
