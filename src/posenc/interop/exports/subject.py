"""The layers of a model, as the targets of an export ask for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Geometric, Schedule
from posenc.interop.configurations import parts_of, read, read_whole, stray_words
from posenc.interop.families import known
from posenc.interop.fields import Configuration, check_length
from posenc.interop.rope_layers import of_its_own_code
from posenc.interop.rope_models import pairing_of_code
from posenc.interop.setup import LayerSetup, Part
from posenc.interop.setup_reading import positional_setup
from posenc.interop.unheeded import check_unheeded

Config = Any | dict[str, Any] | str | Path
"""As ``positional_setup`` takes it."""

Rotation = Rotary | MultimodalRotary

FAR = 2**40
"""A length beyond that of any model."""


def refuse(target: str, what: str) -> NoReturn:
    """Raise the error of a target that cannot express something."""
    raise ValueError(f"{target} cannot express this model: {what}.")


def depends_on_length(config: Config) -> bool:
    """Whether some frequencies of a model depend on the length of the sequences."""
    short, long = (repr(positional_setup(config, length=length)) for length in (1, FAR))
    return short != long


def check_reach(config: Config, *, longest: int, length: int | None) -> None:
    """Refuse a table of ``longest`` rows where sequences of that length have other frequencies."""
    check_length(length)
    if longest <= (length or 0):
        return
    told, there = (repr(positional_setup(config, length=each)) for each in (length, longest))
    if told != there:
        raise ValueError(
            f"The frequencies of this model depend on the length, and those of length {length} do "
            f"not hold for {longest} positions. Pass length={longest}, or a smaller longest."
        )


def only_part(
    config: Config, target: str, *, part: str | None = None, length: int | None = None
) -> Part:
    """The only part of a configuration, or the one that is named."""
    parts = positional_setup(config, length=length).parts
    names = ", ".join(each.name for each in parts)
    if part is None and len(parts) > 1:
        refuse(target, f"it has the parts {names}; name one of them")
    named = [each for each in parts if part in (None, each.name)]
    if not named:
        raise ValueError(f"There is no part {part!r}; this model has {names}.")
    first = named[0]
    if first.strays:
        refuse(target, stray_words(read_whole(config)) or ", ".join(first.strays))
    if not first.layers or any(layer.positional is None for layer in first.layers):
        refuse(target, f"no encoding of the library says what {first.model_type} does")
    return first


def fields_of_only_part(config: Config) -> tuple[str, ...]:
    """The fields that lead to the part of a configuration that has but one."""
    inner, fields = read_whole(config), []
    while nested := parts_of(inner):
        ((field, inner),) = nested.items()
        fields.append(field)
    return tuple(fields)


@dataclass(frozen=True)
class RotatingModel:
    """A model that does nothing with positions but rotate queries and keys."""

    model_type: str  # as the configuration names it
    layers: tuple[LayerSetup, ...]  # what each layer does
    rotations: tuple[Rotation | None, ...]  # the rotation of each layer; None for layers without
    target: str  # what it is exported to, for messages

    @property
    def kinds(self) -> list[tuple[str | None, Rotation]]:
        """Each rotation once, with the type of the first layer that has it."""
        found: dict[str, tuple[str | None, Rotation]] = {}
        for layer, rotation in zip(self.layers, self.rotations, strict=True):
            if rotation is not None:
                found.setdefault(repr(rotation), (layer.layer_type, rotation))
        return list(found.values())

    def layer_of(self, rotation: Rotation) -> LayerSetup:
        """The first layer with this rotation."""
        return self.layers[[repr(r) for r in self.rotations].index(repr(rotation))]

    def only(self, unturned: Sequence[int] = ()) -> Rotary:
        """The one rotation of all layers but those that the target leaves unrotated by itself."""
        if len(self.kinds) > 1:
            told = ", ".join(str(kind) for kind, _ in self.kinds)
            refuse(self.target, f"layers of types {told} rotate differently")
        skipped = [index for index, each in enumerate(self.rotations) if each is None]
        if skipped != list(unturned):
            refuse(self.target, f"layers {skipped} do not rotate, there {[*unturned]}")
        return self.plain(self.kinds[0][1])

    def plain(self, rotation: Rotation) -> Rotary:
        """The rotation, if it is by one position a token."""
        if isinstance(rotation, MultimodalRotary):
            refuse(self.target, f"its pairs are dealt out to axes by {rotation.sections}")
        return rotation

    def check_follows_length(self, rotation: Rotation) -> None:
        """Refuse dynamic NTK, which other programs apply with one factor for all lengths."""
        rope = self.layer_of(rotation).rope
        if rope is not None and rope.kind == "dynamic" and (rope.factor or 1.0) != 1.0:
            refuse(self.target, "its NTK factor follows the length")

    def check_alone(self, rotary: Rotary) -> None:
        """Refuse what frequencies do not tell: softmax factors, latent heads, odd widths."""
        factor = rotary.frequencies.softmax_factor
        if known(self.model_type).get("scale") == "latent" and factor != 1.0:
            refuse(self.target, f"its softmax scale is multiplied with {factor}")
        if rotary.rotated == "suffix":
            refuse(self.target, "its heads rotate the last channels alone")
        powers = powers_under(rotary.frequencies)
        if powers is not None and powers.dim % 2:
            refuse(self.target, f"its frequencies are powers over an odd width, {powers!r}")

    def check_pairing(self, rotary: Rotary) -> None:
        """Refuse weights in another pairing than that of the model's code, which no key tells."""
        own = pairing_of_code(Configuration({}, self.model_type))
        if rotary.pairing != own:
            refuse(self.target, f"its weights have the pairing {rotary.pairing!r}")


def rotating_model(
    config: Config, target: str, *, part: str | None = None, length: int | None = None
) -> RotatingModel:
    """The layers of a model that rotates and does nothing else with positions."""
    chosen = only_part(config, target, part=part, length=length)
    if chosen.name == "text":
        check_unheeded(of_its_own_code(read(config)), length)
    rotations = tuple(_rotation(layer, target) for layer in chosen.layers)
    if not any(rotations):
        refuse(target, "none of its layers rotates queries and keys")
    return RotatingModel(chosen.model_type, chosen.layers, rotations, target)


def _rotation(layer: LayerSetup, target: str) -> Rotation | None:
    positional = layer.positional
    assert positional is not None
    entries = [*positional.tokens, *positional.queries_keys, *positional.scores]
    if rest := [entry for entry in entries if not isinstance(entry, Rotary | MultimodalRotary)]:
        refuse(target, f"it has {rest[0]!r} besides a rotation")
    if len(entries) > 1:
        refuse(target, "a layer rotates twice")
    return entries[0] if entries else None  # type: ignore[return-value]


def powers_under(schedule: Schedule) -> Geometric | None:
    """The powers of a base that a schedule is made of, if it is."""
    inner: Any = schedule
    while not isinstance(inner, Geometric) and hasattr(inner, "of"):
        inner = inner.of
    return inner if isinstance(inner, Geometric) else None
