"""The orders of axes in which content is kept, and the ways to say positions."""

from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.calls import MANNER
from posenc.audit.report import CallFailedError, FewerRowsError, OtherResultError

# b batch, h heads, s sequence, d width, y and x height and width of a grid; axes together are one.
AXES = {
    "bhsd": "b h s d", "bshd": "b s h d", "sbhd": "s b h d", "bsx": "b s hd", "tx": "s hd",
    "thd": "s h d", "bsd": "bh s d", "hsd": "h s d",
}  # fmt: skip
LAYOUTS = tuple(AXES)
"""Orders of queries and keys."""

OF_EMBEDDINGS = {"bsd": "b yx d", "sbd": "yx b d", "sd": "yx d", "bhwd": "b y x d",
                 "bdhw": "b d y x"}  # fmt: skip
"""Orders of embeddings, those of images among them."""

NAMES = {"b": "batch", "h": "heads", "s": "seq", "d": "head_dim", "hd": "heads · head_dim",
         "bh": "batch"}  # fmt: skip
SAID = {
    name: f"[{', '.join(NAMES[a] for a in axes.split())}]".replace("[seq,", "[tokens,")
    for name, axes in AXES.items()
} | {"sbhd": "[seq, batch, heads, head_dim]"}
SAID_OF_EMBEDDINGS = {
    "bsd": "[batch, seq, dim]", "sbd": "[seq, batch, dim]", "sd": "[seq, dim]",
    "bhwd": "[batch, height, width, dim]", "bdhw": "[batch, dim, height, width]",
}  # fmt: skip
ONE_ROW = ("tx", "thd", "hsd")


def orders(said: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those to try: the one that is said, where it is known; all if none is."""
    return known if said is None else tuple(each for each in known if each == said)


def _arranged(x: Tensor, axes: str, wanted: str) -> Tensor:
    """A tensor of these axes in another order, some of them as one; of one row without a batch."""
    groups, letters = wanted.split(), wanted.replace(" ", "")
    if "b" not in letters:
        x, axes = x[0], axes.replace("b", "")
    size = dict(zip(axes, x.shape, strict=True))
    made = x.permute([axes.index(axis) for axis in letters])
    return made.reshape([prod(size[axis] for axis in group) for group in groups]).contiguous()


def laid_out(x: Tensor, layout: str) -> Tensor:
    """``[batch, heads, seq, head_dim]`` in another order; of one row where that has no batch."""
    made, lie = _arranged(x, "bhsd", AXES[layout]), MANNER.get().lie
    return made if lie is None else lie(made)


def embeddings_laid_out(x: Tensor, layout: str, grid: tuple[int, int]) -> Tensor:
    """``[batch, seq, dim]`` in another order of axes."""
    return _arranged(x.unflatten(1, grid), "byxd", OF_EMBEDDINGS[layout])


def taken_back(made: object, layout: str, like: Tensor) -> Tensor:
    """What came in that order as ``[batch, heads, seq, head_dim]`` again."""
    wanted = _arranged(like, "bhsd", AXES[layout]).shape
    if not isinstance(made, Tensor):
        raise OtherResultError(f"it gives {type(made).__name__}")
    if made.shape != wanted and made.squeeze(0).shape != wanted:
        kind = FewerRowsError if made.numel() < wanted.numel() else CallFailedError
        raise kind(f"{SAID[layout]} of {tuple(wanted)} gives {tuple(made.shape)}")
    letters = AXES[layout].replace(" ", "")
    letters = letters if "b" in letters else f"b{letters}"
    size = dict(zip("bhsd", like.shape, strict=True))
    made = made.reshape([size[axis] for axis in letters])
    return made.permute([letters.index(axis) for axis in "bhsd"])


def both_taken_back(
    made: Any, pairs: bool, layout: str, q: Tensor, k: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Queries as they were laid out, and keys where pairs come back."""
    if pairs and isinstance(made, tuple | list) and len(made) > 1:
        return taken_back(made[0], layout, q), taken_back(made[1], layout, k)
    return taken_back(made, layout, q), None


def embeddings_taken_back(made: Tensor, layout: str, seq: int, dim: int) -> Tensor:
    """What came in that order as ``[batch, seq, dim]`` again; a table gets the axes it lacks."""
    shape = tuple(made.shape)
    if layout == "bdhw" and made.ndim == 4 and shape[1] == dim:
        made = made.permute(0, 2, 3, 1)
    if layout == "sbd" and made.ndim == 3:
        made = made.transpose(0, 1)
    if made.ndim == 2:
        made = made[None]
    if made.shape == (seq, 1, dim) and layout == "sd":
        made = made.transpose(0, 1)
    if made.ndim == 4:
        one = layout not in ("bhwd", "bdhw") and 1 in shape[:3] and made.numel() == seq * dim
        made = made.reshape(1 if one else len(made), -1, made.shape[-1])
    if made.ndim == 3 and made.shape[1:] == (seq, dim):
        return made
    if made.ndim == 3 and made.shape[-1] == dim and made.shape[1] < seq:
        raise FewerRowsError(f"for {seq} tokens {made.shape[1]} rows come back")
    raise CallFailedError(f"it gives the shape {shape}")


def said_positions(positions: Tensor, layout: str, heads: int) -> Iterator[Tensor]:
    """``[batch, seq]`` in the shapes in which calls take it: by row first, then one for all."""
    rows = positions.repeat_interleave(heads, 0) if layout == "bsd" else positions
    if layout == "sbhd":
        yield rows.T
    if layout not in ONE_ROW:
        yield rows
    if bool((positions == positions[:1]).all()):
        yield positions[0]


def by_rows(run: Any, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor | None]:
    """Row by row, for what takes one row at a time."""
    made = [run(q[i : i + 1], k[i : i + 1], positions[i : i + 1]) for i in range(len(q))]
    keys = [key for _, key in made if key is not None]
    return torch.cat([query for query, _ in made]), torch.cat(keys) if keys else None
