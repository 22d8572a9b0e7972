"""The positional set-up of a whole model: every part, every layer, as objects of the library."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from posenc.encodings.positional import Positional
from posenc.encodings.tokens.learned import Learned
from posenc.frequencies.huggingface import Rope

Certainty = Literal["verified", "read", "assumed"]


@dataclass(frozen=True)
class LayerSetup:
    """What one layer does with positions; None where nothing says.

    Encodings of tokens stand before the first layer, and are told in each.
    """

    layer_type: str | None  #: as the configuration names it; None where all layers are alike
    positional: Positional | None  #: its encodings; None where no object of the library says them
    softmax_scale: float | None = None  #: what attention multiplies its scores with
    window: int | None = None  #: a query sees the keys at distances below this; None for all
    chunk: int | None = None  #: queries see keys of their own chunk of so many positions
    rope: Rope | None = None  #: the rope dictionary as it was read

    @property
    def encodings(self) -> list[Any]:
        """Those of tokens, of queries and keys, and of scores, in this order."""
        held = self.positional
        return [*held.tokens, *held.queries_keys, *held.scores] if held is not None else []


@dataclass(frozen=True)
class Part:
    """One part of a model: ``"text"``, ``"vision"``, ``"encoder"``, ``"decoder"``, and so on.

    It is ``"verified"`` where it was held against the running model, ``"read"`` where it stands in
    its code or its file, ``"assumed"`` where the model is not known, or the file names code of its
    own by ``auto_map``.
    """

    name: str  #: also ``"cross-attention"``, ``"indexer"``, or what the file calls it
    model_type: str  #: of the part
    layers: tuple[LayerSetup, ...]  #: one a layer
    trained_length: int | None = None  #: positions before any extension; None where nothing says
    certainty: Certainty = "read"
    notes: tuple[str, ...] = ()  #: what else there is to say, in words
    strays: tuple[str, ...] = ()  #: fields beside the parts where the class does not look for them


def alike(
    name: str,
    model_type: str,
    count: int,
    held: Positional | None,
    scale: float | None = None,
    notes: tuple[str, ...] = (),
) -> Part:
    """A part whose layers are alike."""
    rows = [each.max_len for each in held.tokens if isinstance(each, Learned)] if held else []
    layers = (LayerSetup(None, held, scale),) * count
    return Part(name, model_type, layers, rows[0] if rows else None, notes=notes)


@dataclass(frozen=True)
class PositionalSetup:
    """What a model does with positions: its parts, that of text first."""

    model_type: str  #: as the configuration names it
    parts: tuple[Part, ...]

    def __getitem__(self, name: str) -> Part:
        return {part.name: part for part in self.parts}[name]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)
