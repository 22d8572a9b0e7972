"""The orders of axes in which content is kept."""

from math import prod

from torch import Tensor

from posenc.audit.adapters.calls import MANNER
from posenc.audit.report import CallFailedError, FewerRowsError, OtherResultError

# b batch, h heads, s sequence, d width, y and x height and width of a grid; axes together are one.
AXES = {
    "bhsd": "b h s d", "bshd": "b s h d", "sbhd": "s b h d", "bsx": "b s hd", "tx": "s hd",
    "thd": "s h d", "bsd": "bh s d", "hsd": "h s d",
}  # fmt: skip
LAYOUTS = tuple(AXES)  # of queries and keys
OF_EMBEDDINGS = {
    "bsd": "b yx d", "sbd": "yx b d", "sd": "yx d", "bhwd": "b y x d", "bdhw": "b d y x",
}  # fmt: skip
NAMES = {"b": "batch", "h": "heads", "s": "seq", "d": "head_dim", "hd": "heads · head_dim",
         "bh": "batch", "yx": "seq", "y": "height", "x": "width"}  # fmt: skip


ONE_ROW = ("tx", "thd", "hsd")


def in_words(axes: str, **other: str) -> str:
    """The shape of so many axes, in words."""
    return f"[{', '.join((NAMES | other)[axis] for axis in axes.split())}]"


def arranged(x: Tensor, axes: str, wanted: str) -> Tensor:
    """A tensor of these axes in another order, some of them as one; of one row without a batch."""
    groups, letters = wanted.split(), wanted.replace(" ", "")
    if "b" not in letters:
        x, axes = x[0], axes.replace("b", "")
    size = dict(zip(axes, x.shape, strict=True))
    made = x.permute([axes.index(axis) for axis in letters])
    return made.reshape([prod(size[axis] for axis in group) for group in groups]).contiguous()


def laid_out(x: Tensor, layout: str) -> Tensor:
    """``[batch, heads, seq, head_dim]`` in another order; of one row where that has no batch."""
    made, lie = arranged(x, "bhsd", AXES[layout]), MANNER.get().lie
    return made if lie is None else lie(made)


def taken_back(made: object, layout: str, like: Tensor) -> Tensor:
    """What came in that order as ``[batch, heads, seq, head_dim]`` again."""
    wanted = arranged(like, "bhsd", AXES[layout]).shape
    if not isinstance(made, Tensor):
        raise OtherResultError(f"it gives {type(made).__name__}")
    if made.shape != wanted and made.squeeze(0).shape != wanted:
        kind = FewerRowsError if made.numel() < wanted.numel() else CallFailedError
        raise kind(f"{in_words(AXES[layout])} of {tuple(wanted)} gives {tuple(made.shape)}")
    letters = AXES[layout].replace(" ", "")
    letters = letters if "b" in letters else f"b{letters}"
    size = dict(zip("bhsd", like.shape, strict=True))
    made = made.reshape([size[axis] for axis in letters])
    return made.permute([letters.index(axis) for axis in "bhsd"])


def embeddings_taken_back(made: Tensor, layout: str, seq: int, dim: int) -> Tensor:
    """What came in that order as ``[batch, seq, dim]`` again; a table gets the axes it lacks."""
    shape = tuple(made.shape)
    if layout == "bdhw" and made.ndim == 4 and shape[1] == dim:
        made = made.movedim(1, -1)
    elif layout == "sbd" and made.ndim == 3:
        made = made.transpose(0, 1)
    if made.ndim > 1 and made.shape[-1] == dim:
        is_one = made.ndim == 2 or made.numel() == seq * dim
        made = made.reshape(1 if is_one else len(made), -1, dim)
        if made.shape[1] == seq:
            return made
        if made.shape[1] < seq:
            raise FewerRowsError(f"for {seq} tokens {made.shape[1]} rows come back")
    raise CallFailedError(f"it gives the shape {shape}")


def varies(values: Tensor, axis: int) -> float:
    """The largest change of ``values`` along an axis."""
    values = values.double()
    return (values - values.narrow(axis, 0, 1)).abs().max().item() if values.numel() else 0.0
