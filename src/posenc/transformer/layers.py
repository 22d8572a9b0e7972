"""The encodings of each layer: the same in all of them, or one ``Positional`` a layer."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

from torch import nn

from posenc.arguments import check_whole, is_row
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding
from posenc.encodings.positional import Positional

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")

QueryKeyEncodings = tuple[QueryKeyEncoding, ...]
ScoreEncodings = tuple[ScoreEncoding, ...]


def held(
    positional: Positional | Sequence[Positional] | None, depth: int
) -> Positional | nn.ModuleList:
    """``positional`` as an encoder holds it: itself, or a list with one of them a layer.

    Raises:
        TypeError: It is neither ``Positional`` nor a sequence of these.
        ValueError: There are more or fewer than layers, or a layer after the first adds to tokens.

    Example:
        >>> same, other = Positional(), Positional()
        >>> len(held((same, other, same), depth=3))
        3
    """
    if positional is None or isinstance(positional, Positional):
        return positional or Positional()
    layers = list(positional) if isinstance(positional, Sequence | nn.ModuleList) else [positional]
    for layer in layers:
        if not isinstance(layer, Positional):
            raise TypeError(
                f"positional holds a {type(layer).__name__}; it takes Positional(...), or one "
                f"Positional a layer."
            )
    if len(layers) != depth:
        raise ValueError(
            f"positional has {len(layers)} layers; the encoder has depth {depth}. Pass one "
            f"Positional a layer, or a single one for all."
        )
    check_later(layers)
    return nn.ModuleList(layers) if layers else Positional()


def check_later(layers: Sequence[Positional]) -> None:
    """Refuse what a layer after the first would add to tokens, or do to positions: nobody asks it.

    Raises:
        ValueError: There is such a layer.
    """
    for index, layer in enumerate(layers):
        if layer is not layers[0] and len(layer.tokens):
            raise ValueError(
                f"Layer {index} has encodings of tokens; they are added once, before the first "
                f"layer. Give them to the first Positional alone."
            )
        if layer is not layers[0] and layer.positions:
            raise ValueError(
                f"Layer {index} changes positions; they are changed once, before the first layer. "
                f"Give positions= to the first Positional alone."
            )


def queries_keys_of(layers: Sequence[Positional]) -> list[QueryKeyEncodings]:
    """The encodings of queries and keys of each layer."""
    return [tuple(cast("Sequence[QueryKeyEncoding]", layer.queries_keys)) for layer in layers]


def scores_of(layers: Sequence[Positional]) -> list[ScoreEncodings]:
    """The encodings of scores of each layer."""
    return [tuple(cast("Sequence[ScoreEncoding]", layer.scores)) for layer in layers]


def windows_of(window: int | Sequence[int | None] | None, depth: int) -> list[int | None]:
    """The window of each layer.

    Raises:
        ValueError: There are more or fewer than layers, or one is no number of tokens.

    Example:
        >>> windows_of([512, None], 2), windows_of(512, 2)
        ([512, None], [512, 512])
    """
    windows: list[Any] = list(window) if is_row(window) else [window] * depth
    for each in windows:
        check_window(each)
    if len(windows) != depth:
        raise ValueError(
            f"window has {len(windows)} entries; the encoder has depth {depth}. Pass one a layer "
            f"(None where it sees all), or one for all."
        )
    return windows


def check_window(window: object) -> None:
    """Raise where ``window`` is neither a number of tokens nor ``None``."""
    if window is not None:
        check_whole(window=window)


def once_each(keys: Sequence[Key], make: Callable[[Key], Made]) -> list[Made]:
    """``make`` of every key, called once for those that are equal.

    Example:
        >>> once_each(["local", "local", "global"], len)
        [5, 5, 6]
    """
    made: dict[Key, Made] = {}
    for key in keys:
        if key not in made:
            made[key] = make(key)
    return [made[key] for key in keys]


def check_sizes(positional: Positional, dim: int, heads: int, head_dim: int) -> None:
    """Raise where an encoding was built for other sizes than the encoder's, or none rotates."""
    for encoding in cast("Sequence[ScoreEncoding]", positional.scores):
        rotations = tuple(cast("Sequence[QueryKeyEncoding]", positional.queries_keys))
        encoding.check_beside(rotations, rotated_before=False)
    wanted = {
        "tokens": ("dim", dim),
        "queries_keys": ("head_dim", head_dim),
        "scores": ("heads", heads),
    }
    for place, (name, size) in wanted.items():
        for encoding in getattr(positional, place):
            if getattr(encoding, name, size) != size:
                raise ValueError(
                    f"{type(encoding).__name__} was built with {name}={getattr(encoding, name)}; "
                    f"this encoder has {name} {size}. Build it with {name}={size}."
                )
            for order in ("batch_first", "heads_first"):
                if not getattr(encoding, order, True):
                    raise ValueError(
                        f"{type(encoding).__name__} was built with {order}=False; this encoder "
                        f"holds [batch, seq, dim] and [batch, heads, seq, head_dim]. Build it "
                        f"with {order}=True."
                    )
            if place == "queries_keys":
                size = encoding.encoded_dim
