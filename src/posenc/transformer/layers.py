"""The encodings of each layer: the same in all of them, or one ``Positional`` a layer."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from torch import Tensor, nn

from posenc.arguments import check_whole, is_row
from posenc.backends.features import readers
from posenc.backends.neighbors import check_scores_know_documents
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, working_dtype
from posenc.encodings.positional import Positional, check_positional
from posenc.transformer.placement import Placement
from posenc.transformer.tables import AttentionTables, Tables

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


def held(
    positional: Positional | Sequence[Positional] | None, depth: int
) -> Positional | nn.ModuleList:
    """``positional`` as an encoder holds it: itself, or a list with one of them a layer."""
    if positional is None or isinstance(positional, Positional):
        return positional or Positional()
    layers = list(positional) if isinstance(positional, Iterable) else [positional]
    for layer in layers:
        check_positional(layer)
    if len(layers) != depth:
        raise ValueError(f"positional has {len(layers)} layers; the encoder has depth {depth}.")
    for index, layer in enumerate(layers):
        if layer is not layers[0] and (len(layer.tokens) or layer.positions):
            raise ValueError(
                f"Layer {index} has encodings of tokens or changes positions; both are done once, "
                f"before the first layer. Give them to the first Positional alone."
            )
    return nn.ModuleList(layers) if layers else Positional()


def windows_of(window: int | Sequence[int | None] | None, depth: int) -> list[int | None]:
    """The window of each layer."""
    windows: list[Any] = list(window) if is_row(window) else [window] * depth
    for each in windows:
        if each is not None:
            check_whole(window=each)
    if len(windows) != depth:
        raise ValueError(f"window has {len(windows)} entries; the encoder has depth {depth}.")
    return windows


def handed_down(
    layers: Sequence[Positional],
    windows: Sequence[int | None],
    tables: Tables,
    x: Tensor,
    placement: Placement,
    backend: Callable[[Any], dict[str, Any]] | None = None,
) -> list[AttentionTables]:
    """What attention in each layer is handed; those that are alike share it."""
    encodings = once_each(layers, lambda each: (tuple(each.queries_keys), tuple(each.scores)))
    kinds = [(*each, window) for each, window in zip(encodings, windows, strict=True)]
    alike = list(dict.fromkeys(kinds))
    given = {"dtype": working_dtype(x.dtype), "below": placement.below}
    rotate = partial(tables.rotations, positions=placement.positions, **given)
    by_score = backend or partial(_scores, placement.specification, partial(tables.biases, **given))
    rotations = once_each([kind[0] for kind in alike], rotate)
    scores = once_each([kind[1:] for kind in alike], by_score)
    made: dict[Any, AttentionTables] = {}
    for kind, (rotated, rows), of_scores in zip(alike, rotations, scores, strict=True):
        read = readers(cast("tuple[ScoreEncoding, ...]", kind[1]))
        made[kind] = AttentionTables(rotated, positions=rows, readers=read, **of_scores)
    return [made[kind] for kind in kinds]


def _scores(spec: AttentionSpecification, build: Callable[..., Tensor], layer: Any) -> dict:
    """The tables of scores, queries × keys."""
    check_scores_know_documents(layer[0], spec)
    return {"scores": tuple((each, build(each, spec.queries, spec.keys)) for each in layer[0])}


def once_each(keys: Sequence[Key], make: Callable[[Key], Made]) -> list[Made]:
    """``make`` of every key, called once for those that are equal."""
    made: dict[Key, Made] = {}
    for key in keys:
        if key not in made:
            made[key] = make(key)
    return [made[key] for key in keys]


def check_sizes(positional: Positional, dim: int, heads: int, head_dim: int) -> None:
    """Raise where an encoding was built for other sizes than the encoder's."""
    wanted = {"tokens": ("dim", dim), "queries_keys": ("head_dim", head_dim),
              "scores": ("heads", heads)}  # fmt: skip
    rotations = tuple(cast("Sequence[QueryKeyEncoding]", positional.queries_keys))
    for encoding in cast("Sequence[ScoreEncoding]", positional.scores):
        encoding.check_beside(rotations, rotated_before=False)
    for place, (name, size) in wanted.items():
        for encoding in getattr(positional, place):
            if getattr(encoding, name, size) != size:
                raise ValueError(
                    f"{type(encoding).__name__} was built with {name}={getattr(encoding, name)}; "
                    f"this encoder has {name} {size}."
                )
            for order in ("batch_first", "heads_first"):
                if not getattr(encoding, order, True):
                    raise ValueError(
                        f"{type(encoding).__name__} was built with {order}=False; this encoder "
                        f"holds [batch, seq, dim] and [batch, heads, seq, head_dim]."
                    )
            if place == "queries_keys":
                size = encoding.encoded_dim
