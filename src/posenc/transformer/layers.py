"""The encodings of each layer: the same in all of them, or one ``Positional`` a layer."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from torch import Tensor, nn

from posenc.arguments import check_whole, is_row
from posenc.backends.explicit import readers
from posenc.backends.neighbors import check_scores_know_documents
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, working_dtype
from posenc.encodings.positional import Positional, check_positional
from posenc.transformer.placement import Placement
from posenc.transformer.tables import AttentionTables, Tables


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
                f"Layer {index} has encodings of tokens or of positions; only the first may."
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
    encodings, kinds = {}, []
    for each, window in zip(layers, windows, strict=True):
        if each not in encodings:
            encodings[each] = tuple(each.queries_keys), tuple(each.scores)
        kinds.append((*encodings[each], window))
    given = {"dtype": working_dtype(x.dtype), "below": placement.below}
    by_score = backend or partial(_scores, placement.specification, partial(tables.biases, **given))
    rotated, scored, made = {}, {}, {}
    for kind in dict.fromkeys(kinds):
        rotations, scores = kind[0], kind[1:]
        if rotations not in rotated:
            rotated[rotations] = tables.rotations(rotations, placement.positions, **given)
        if scores not in scored:
            scored[scores] = by_score(scores)
        turned, rows = rotated[rotations]
        made[kind] = AttentionTables(
            turned, positions=rows, readers=readers(kind[1]), **scored[scores]
        )
    return [made[kind] for kind in kinds]


def _scores(spec: AttentionSpecification, build: Callable[..., Tensor], layer: Any) -> dict:
    """The tables of scores, queries × keys."""
    check_scores_know_documents(layer[0], spec)
    return {"scores": tuple((each, build(each, spec.queries, spec.keys)) for each in layer[0])}


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
                said = f"{type(encoding).__name__} was built with {name}={getattr(encoding, name)}"
                raise ValueError(f"{said}; this encoder has {name} {size}.")
            for order in ("batch_first", "heads_first"):
                if not getattr(encoding, order, True):
                    said = f"{type(encoding).__name__} was built with {order}=False"
                    layout = "[batch, seq, dim] and [batch, heads, seq, head_dim]"
                    raise ValueError(f"{said}; this encoder holds {layout}.")
            if place == "queries_keys":
                size = encoding.encoded_dim
