"""The orders of axes in which queries and keys are kept, and the ways to say positions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from posenc.audit.report import CallFailedError, FewerRowsError, OtherResultError

LAYOUTS = ("bhsd", "bshd", "sbhd", "bsx", "tx", "thd", "bsd", "hsd")
"""b batch, h heads, s sequence, d head_dim, t tokens of one row, x heads and head_dim in one."""

SAID = {
    "bhsd": "[batch, heads, seq, head_dim]",
    "bshd": "[batch, seq, heads, head_dim]",
    "sbhd": "[seq, batch, heads, head_dim]",
    "bsx": "[batch, seq, heads · head_dim]",
    "tx": "[tokens, heads · head_dim]",
    "thd": "[tokens, heads, head_dim]",
    "bsd": "[batch, seq, head_dim]",
    "hsd": "[heads, seq, head_dim]",
}
ONE_ROW = ("tx", "thd", "hsd")


def orders(said: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those to try: the one that is said, where it is known; all if none is.

    Example:
        >>> orders(None, ("bsd", "sbd")), orders("sbd", ("bsd", "sbd")), orders("tx", ("bsd",))
        (('bsd', 'sbd'), ('sbd',), ())
    """
    return known if said is None else tuple(each for each in known if each == said)


@contextmanager
def in_memory(lie: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Within, what calls are given lies in memory as ``lie`` lays it."""
    token = _lies.set(lie)
    try:
        yield
    finally:
        _lies.reset(token)


_lies: ContextVar[Callable[[Tensor], Tensor] | None] = ContextVar("lies", default=None)


def laid_out(x: Tensor, layout: str) -> Tensor:
    """``[batch, heads, seq, head_dim]`` in another order of axes; of one row where it has no batch.

    Example:
        >>> laid_out(torch.zeros(1, 4, 7, 8), "tx").shape
        torch.Size([7, 32])
    """
    made, lie = _ordered(x, layout), _lies.get()
    return made if lie is None else lie(made)


def _ordered(x: Tensor, layout: str) -> Tensor:
    if layout == "bshd":
        return x.transpose(1, 2).contiguous()
    if layout == "sbhd":
        return x.permute(2, 0, 1, 3).contiguous()
    if layout == "bsx":
        return x.transpose(1, 2).flatten(2)
    if layout == "tx":
        return x[0].transpose(0, 1).flatten(1)
    if layout == "thd":
        return x[0].transpose(0, 1).contiguous()
    if layout == "hsd":
        return x[0]
    if layout == "bsd":
        return x.flatten(0, 1)
    return x.contiguous()


def taken_back(made: object, layout: str, like: Tensor) -> Tensor:
    """What came in that order as ``[batch, heads, seq, head_dim]`` again.

    Raises:
        CallFailedError: It has another shape than what went in.
        FewerRowsError: It has fewer numbers than went in.
    """
    b, h, s, d = like.shape
    wanted = laid_out(like, layout).shape
    if not isinstance(made, Tensor):
        raise OtherResultError(f"it gives {type(made).__name__}")
    if made.shape != wanted and made.squeeze(0).shape != wanted:
        kind = FewerRowsError if made.numel() < wanted.numel() else CallFailedError
        raise kind(f"{SAID.get(layout, layout)} of {tuple(wanted)} gives {tuple(made.shape)}")
    made = made.reshape(wanted)
    if layout in ("bshd",):
        return made.transpose(1, 2)
    if layout == "sbhd":
        return made.permute(1, 2, 0, 3)
    if layout in ("bsx", "tx", "thd"):
        return made.reshape(b, s, h, d).transpose(1, 2)
    return made.reshape(b, h, s, d)


def said_positions(positions: Tensor, layout: str, heads: int) -> Iterator[Tensor]:
    """``[batch, seq]`` in the shapes in which calls take it: by row first, then one for all."""
    rows = positions.repeat_interleave(heads, 0) if layout == "bsd" else positions
    if layout == "sbhd":
        yield rows.T
    if layout not in ONE_ROW:
        yield rows
    if bool((positions == positions[:1]).all()):
        yield positions[0]


def by_rows(
    run: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor | None]],
    q: Tensor,
    k: Tensor,
    positions: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """Row by row, for what takes one row at a time."""
    made = [run(q[i : i + 1], k[i : i + 1], positions[i : i + 1]) for i in range(len(q))]
    keys = [key for _, key in made if key is not None]
    return torch.cat([query for query, _ in made]), torch.cat(keys) if keys else None
