"""Tables of scores, held at each call to the axes that the signature of the method names.

Broadcasting takes one row of a table for that of every query, and one query for all. So what
``encode`` says of its table, as ``Int64[Tensor, "*rows 2 q_len k_len"]``, is what it takes: the
last axes are those of the scores, those before them as large as they are called, and the axes of
the batch may be fewer, or 1, but not others. Shapes alone are looked at, so that graphs and
transforms are held to it as well.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from posenc.guards import FLOATING, working_dtype

INT64 = torch.int64
HEADS, ANY = -1, -2  # of an axis that is as long as there are heads, and of one that may be any


class TableAxes(NamedTuple):
    """What a signature says of a table.

    Attributes:
        between: The sizes of the axes between those of the batch and ``q_len k_len``.
        whole: Whether it holds whole numbers; ``None`` where the signature leaves it open.
    """

    between: tuple[int, ...]
    whole: bool | None


def table_axes(method: Callable) -> TableAxes | None:
    """What the signature of ``method`` says of its ``table``; ``None`` if not that it is of pairs.

    Example:
        >>> from posenc import KERPLE, RePo
        >>> table_axes(RePo.encode), table_axes(KERPLE.encode)
        (TableAxes(between=(2,), whole=True), TableAxes(between=(-1,), whole=False))
    """
    annotation = getattr(method, "__annotations__", {}).get("table")
    named, dtypes = (getattr(annotation, name, "") for name in ("dim_str", "dtypes"))
    axes = named.split()
    if axes[-2:] != ["q_len", "k_len"]:
        return None
    inner = [axis for axis in axes[:-2] if not axis.startswith(("*", "."))]
    between = (int(a) if a.isdigit() else HEADS if a == "heads" else ANY for a in inner)
    whole = "int64" in dtypes if ("int64" in dtypes) != ("float32" in dtypes) else None
    return TableAxes(tuple(between), whole)


def row_axes(method: Callable) -> int | None:
    """How many axes a row of ``table`` has by the signature of ``method``: those after the axes of
    the tokens, which are ``*rows``, or end in ``seq``; ``None`` if it leaves them open.

    Example:
        >>> from posenc import DirectedRotary, FoPE, Rotary
        >>> [row_axes(kind.encode_queries) for kind in (Rotary, FoPE, DirectedRotary)]
        [2, 3, None]
    """
    annotation = getattr(method, "__annotations__", {}).get("table")
    tokens, *named = getattr(annotation, "dim_str", "").split() or [""]
    row = named[named.index("seq") + 1 :] if "seq" in named else named
    known = tokens == "*rows" or "seq" in named
    told = known and row and not any(a.startswith(("*", ".")) for a in row)
    return len(row) if told else None


def like_scores(method: Callable) -> tuple[str, ...]:
    """The arguments of ``method`` to which its signature gives the axes of ``scores``.

    Example:
        >>> from posenc import CoPE, Shaw
        >>> like_scores(CoPE.encode), like_scores(Shaw.encode)
        (('gates',), ())
    """
    annotations = getattr(method, "__annotations__", {})
    axes = getattr(annotations.get("scores"), "dim_str", None)
    if axes is None:
        return ()
    members = {name: get_args(annotation) for name, annotation in annotations.items()}
    return tuple(
        name
        for name, kinds in members.items()
        if name != "return" and any(getattr(kind, "dim_str", None) == axes for kind in kinds)
    )


def held_to_scores(encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``encode(scores, table, …)``, which refuses what its signature does not take."""
    axes, alike = table_axes(encode), like_scores(encode)
    if axes is None:
        return encode

    @wraps(encode)
    def held(self: Any, scores: Tensor, table: Tensor, *others: Any, **content: Any) -> Tensor:
        check_table(type(self).__name__, "scores", self.heads, scores, table, *axes)
        for name in alike:
            check_like_scores(type(self).__name__, name, scores, content.get(name))
        return encode(self, scores, table, *others, **content)

    return held


def held_to_weights(encode_output: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``encode_output(out, weights, table)``, likewise."""
    axes = table_axes(encode_output)
    if axes is None:
        return encode_output

    @wraps(encode_output)
    def held(self: Any, out: Tensor, weights: Tensor, table: Tensor) -> Tensor:
        check_table(type(self).__name__, "weights", self.heads, weights, table, *axes)
        return encode_output(self, out, weights, table)

    return held


def check_given(name: str, what: str, given: Tensor) -> None:
    """Refuse scores or weights whose dtype would cut off what is added, or that lack an axis.

    Raises:
        TypeError: They are not floating.
        ValueError: They have no axis of heads, queries or keys.
    """
    if not given.is_floating_point():
        raise TypeError(
            f"{what} are {given.dtype}; {name} takes floating ones, products of queries and keys."
        )
    working_dtype(given.dtype)  # which refuses eight bits
    if given.ndim < 3:
        raise ValueError(
            f"{what} have shape {tuple(given.shape)}; {name} takes [*batch, heads, q_len, k_len]."
        )


def check_like_scores(name: str, what: str, scores: Tensor, given: Tensor | None) -> None:
    """Refuse what is to stand in the place of the scores and is not of their shape.

    Raises:
        TypeError: It is not floating.
        ValueError: It has another shape.
    """
    if given is None:
        return
    check_given(name, what, given)
    if given.shape != scores.shape:
        raise ValueError(
            f"{what} have shape {tuple(given.shape)} and scores {tuple(scores.shape)}; {name} "
            f"takes one number for each of the scores."
        )


def check_table(
    name: str,
    what: str,
    heads: int,
    given: Tensor,
    table: Tensor,
    between: tuple[int, ...] = (),
    whole: bool | None = None,
) -> None:
    """Refuse a table that is not of the queries and keys of these scores.

    Args:
        name: The encoding, for the words of an error.
        what: What is given, likewise: scores or weights.
        heads: Heads that the encoding was built for.
        given: ``[*batch, heads, q_len, k_len]``.
        table: ``[*rows, *between, q_len, k_len]``.
        between: As in ``TableAxes``.
        whole: Likewise.

    Raises:
        TypeError: The scores are not floating, or the table is of the other kind of numbers.
        ValueError: The table is of other heads, queries or keys, or of other rows of a batch.

    Example:
        >>> check_table("Shaw", "scores", 4, torch.zeros(4, 2, 3), torch.zeros(1, 3))
        Traceback (most recent call last):
        ...
        ValueError: scores have shape (4, 2, 3) and the table (1, 3), which Shaw takes as [*rows, \
2, 3]. Pass the positions of these queries and keys, one each.
    """
    size, shape = given.shape, table.shape
    if given.dtype not in FLOATING or not _fits(size, shape, between):
        _refuse(name, what, heads, given, tuple(shape), between)
    if whole is None or (table.dtype is INT64 if whole else table.dtype in FLOATING):
        return
    kind = "whole numbers, int64" if whole else "floating numbers"
    raise TypeError(
        f"The table is {table.dtype}; {name} takes {kind}. Pass what its own table(...) gives."
    )


def _fits(size: tuple[int, ...], shape: tuple[int, ...], between: tuple[int, ...]) -> bool:
    """Whether ``shape`` is ``[*rows, *between, q_len, k_len]`` of scores of this size.

    It runs at every step of decoding, and so without slices and generators, which take longer.
    """
    batch, rows = len(size) - 3, len(shape) - 2 - len(between)
    if rows < 0 or rows > batch or shape[-1] != size[-1] or shape[-2] != size[-2]:
        return False
    if between:
        for place, axis in enumerate(between, rows):
            if shape[place] != (size[-3] if axis == HEADS else axis) and axis != ANY:
                return False
    if rows:
        for place in range(rows):  # one for each of the batch, or one for all
            if shape[place] not in (1, size[batch - rows + place]):
                return False
    return True


def _refuse(
    name: str,
    what: str,
    heads: int,
    given: Tensor,
    shape: tuple[int, ...],
    between: tuple[int, ...],
) -> None:
    check_given(name, what, given)
    size = tuple(given.shape)
    if HEADS in between and size[-3] != heads:
        raise ValueError(
            f"{name} was built for {heads} heads; {what} have {size[-3]}. Build it with "
            f"heads={size[-3]}."
        )
    inner = (str(size[-3]) if axis == HEADS else "…" if axis == ANY else axis for axis in between)
    takes = ", ".join(map(str, ("*rows", *inner, *size[-2:])))
    raise ValueError(
        f"{what} have shape {size} and the table {shape}, which {name} takes as [{takes}]. Pass "
        f"the positions of these queries and keys, one each."
    )
