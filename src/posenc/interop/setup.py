"""The positional set-up of a whole model: every part, every layer, as objects of the library."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from posenc.encodings.positional import Positional
from posenc.frequencies.huggingface import Rope

Certainty = Literal["verified", "read", "assumed"]


@dataclass(frozen=True)
class LayerSetup:
    """What one layer does with positions.

    Attributes:
        layer_type: As the configuration names it; None where all layers are alike.
        positional: The encodings; those of tokens stand before the first layer, and are told in
            each. None where no object of the library says what the layer does.
        softmax_scale: What attention multiplies its scores with; None where nothing says.
        window: A query sees the keys at distances below this; None for all of them.
        chunk: Queries see keys of their own chunk of so many positions; None without chunks.
        rope: The rope dictionary as it was read; None without one.
    """

    layer_type: str | None
    positional: Positional | None
    softmax_scale: float | None = None
    window: int | None = None
    chunk: int | None = None
    rope: Rope | None = None

    @property
    def encodings(self) -> list[Any]:
        """Those of tokens, of queries and keys, and of scores, in this order."""
        held = self.positional
        return [*held.tokens, *held.queries_keys, *held.scores] if held is not None else []


@dataclass(frozen=True)
class Part:
    """One part of a model.

    Attributes:
        name: ``"text"``, ``"vision"``, ``"encoder"``, ``"decoder"``, ``"cross-attention"``,
            ``"indexer"``, or what the file calls it.
        model_type: Of the part.
        layers: One a layer.
        trained_length: Positions before any extension; None where nothing says.
        certainty: ``"verified"`` where this was held against the running model, ``"read"`` where
            it stands in its code or its file, ``"assumed"`` where the model is not known, or the
            file names code of its own by ``auto_map``.
        notes: What else there is to say, in words.
        strays: Fields beside the parts, where the class of the whole in transformers does not look
            for them; ``notes`` say whether they were read here.
    """

    name: str
    model_type: str
    layers: tuple[LayerSetup, ...]
    trained_length: int | None = None
    certainty: Certainty = "read"
    notes: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()


@dataclass(frozen=True)
class PositionalSetup:
    """What a model does with positions.

    Attributes:
        model_type: As the configuration names it.
        parts: Its parts, that of text first.
    """

    model_type: str
    parts: tuple[Part, ...]

    def __getitem__(self, name: str) -> Part:
        return {part.name: part for part in self.parts}[name]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)
