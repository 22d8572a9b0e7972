"""The layers of a model, as the targets of an export ask for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Geometric, Schedule, YaRN
from posenc.frequencies.huggingface import Rope
from posenc.interop.configurations import Config, read
from posenc.interop.fields import Configuration
from posenc.interop.oracle.encodings import Encoding, bare
from posenc.interop.rope_models import check_unheeded, of_its_own_code, pairing_of_code
from posenc.interop.setup import LayerSetup, Part
from posenc.interop.setup_reading import positional_setup


def refuse(what: str) -> NoReturn:
    """Raise the error of a target that cannot express something."""
    raise ValueError(f"The target cannot express this model: {what}.")


def depends_on_length(config: Config, *lengths: int | None) -> bool:
    """Whether sequences of these lengths, or of any, have different frequencies."""
    # 2^40 is longer than what any model is made for.
    read_at = {repr(positional_setup(config, length=each)) for each in lengths or (1, 2**40)}
    return len(read_at) > 1


def check_reach(config: Config, *, longest: int, length: int | None) -> None:
    """Refuse a table of ``longest`` rows where sequences of that length have other frequencies."""
    if longest > (length or 0) and depends_on_length(config, length, longest):
        raise ValueError(
            f"The frequencies of this model depend on the length, and those of length {length} do "
            f"not hold for {longest} positions. Pass length={longest}, or a smaller longest."
        )


def only_part(config: Config, *, part: str | None = None, length: int | None = None) -> Part:
    """The only part of a configuration, or the one that is named."""
    parts = {each.name: each for each in positional_setup(config, length=length)}
    names = ", ".join(parts)
    if part is None and len(parts) > 1:
        refuse(f"it has the parts {names}; name one of them")
    chosen = next(iter(parts.values())) if part is None else parts.get(part)
    if chosen is None:
        raise ValueError(f"There is no part {part!r}; this model has {names}.")
    if chosen.strays:
        refuse(chosen.notes[-1])
    if not chosen.layers or any(layer.positional is None for layer in chosen.layers):
        refuse(f"no encoding of the library says what {chosen.model_type} does")
    return chosen


@dataclass(frozen=True)
class RotatingModel:
    """A model that does nothing with positions but rotate queries and keys."""

    model_type: str  # as the configuration names it
    layers: tuple[LayerSetup, ...]  # what each layer does

    @property
    def rotations(self) -> list[Encoding | None]:
        """The rotation of each layer; None for layers without."""
        return [next(iter(layer.encodings), None) for layer in self.layers]

    def alike(self) -> Encoding:
        """The one rotation of all layers that rotate."""
        kinds = {repr(layer.encodings): layer for layer in self.layers if layer.encodings}
        if len(kinds) > 1:
            told = ", ".join(str(layer.layer_type) for layer in kinds.values())
            refuse(f"layers of types {told} rotate differently")
        return next(filter(None, self.rotations))

    def only(self, unturned: Sequence[int] = ()) -> Rotary:
        """The one rotation of all layers but those that the target leaves unrotated by itself."""
        rotation = self.alike()
        skipped = [index for index, each in enumerate(self.rotations) if each is None]
        if skipped != list(unturned):
            refuse(f"layers {skipped} do not rotate, there {[*unturned]}")
        return self.plain(rotation)

    def plain(self, rotation: Encoding) -> Rotary:
        """The rotation, if it is by one position a token."""
        if isinstance(rotation, MultimodalRotary):
            refuse(f"its pairs are dealt out to axes by {rotation.sections}")
        return rotation

    def rope_of(self, rotation: Encoding) -> Rope:
        """The rope dictionary of a rotation, where frequencies and dictionary tell all of it."""
        rope: Any = next(x.rope for x in self.layers if x.encodings == [rotation])
        rotary = bare(rotation)
        powers = powers_under(rotary.frequencies)
        if rope.kind == "dynamic" and (rope.factor or 1.0) != 1.0:
            refuse("its NTK factor follows the length")
        if rotary.rotated == "suffix":  # those of latent attention, with a softmax factor or not
            refuse("its heads rotate the last channels alone")
        if powers is not None and powers.dim % 2:
            refuse(f"its frequencies are powers over an odd width, {powers!r}")
        return rope

    def check_pairing(self, rotary: Rotary) -> None:
        """Refuse weights in another pairing than that of the model's code, which no key tells."""
        if rotary.pairing != pairing_of_code(Configuration({}, self.model_type)):
            refuse(f"its weights have the pairing {rotary.pairing!r}")


def rotating_model(
    config: Config, *, part: str | None = None, length: int | None = None
) -> RotatingModel:
    """The layers of a model that rotates and does nothing else with positions."""
    chosen = only_part(config, part=part, length=length)
    if chosen.name == "text":
        check_unheeded(of_its_own_code(read(config)), length)
    encodings = [each for layer in chosen.layers for each in layer.encodings]
    for each in encodings:
        if not isinstance(each, Rotary | MultimodalRotary):
            refuse(f"it has {each!r} besides a rotation")
    if not encodings:
        refuse("none of its layers rotates queries and keys")
    return RotatingModel(chosen.model_type, chosen.layers)


def share_of(rotary: Rotary) -> float:
    """How much of a head rotates, as a fraction that programs multiply and truncate."""
    share = rotary.rotated_dim / rotary.head_dim
    if int(rotary.head_dim * share) != rotary.rotated_dim:
        refuse(f"no fraction gives {rotary.rotated_dim} of {rotary.head_dim} channels")
    return share


def beside_yarns(schedule: YaRN) -> float:
    """Its attention factor, as a share of the 0.1·ln s + 1 that programs multiply themselves."""
    usual = YaRN(schedule.of, schedule.factor, schedule.trained_length)
    return schedule.attention_factor / usual.attention_factor


def powers_under(schedule: Schedule) -> Geometric | None:
    """The powers of a base that a schedule is made of, if it is."""
    inner: Any = schedule
    while not isinstance(inner, Geometric) and hasattr(inner, "of"):
        inner = inner.of
    return inner if isinstance(inner, Geometric) else None
