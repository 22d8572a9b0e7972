"""What can be asked of any table: row p is what position p receives."""

from collections.abc import Callable

import torch
from torch import Tensor

from posenc.audit.questions.asking import fault
from posenc.audit.report import Fault

SUDDEN = 16.0
"""How many times as much for each position an error may be as those before."""

APART = 1e-7
"""Rows closer than this are taken to be one, beside a size of one."""

ANOTHER = 0.25
"""What sines are off by where nobody would call them equal."""


def held_against(ours: str, off: float, last: int) -> str:
    """How far something is from ours to the last position that was asked, in words.

    Example:
        >>> held_against("posenc.Sinusoidal(32)", 2.0, 127)
        'like posenc.Sinusoidal(32) near position 0 alone, and up to 2 away from it by position 127'
    """
    if off > ANOTHER:
        away = f"up to {off:.1g} away from it by position {last:,}"
        return f"like {ours} near position 0 alone, and {away}"
    return f"equal to {ours} within {off:.1g} to position {last:,}"


def broken(
    table: Tensor, line: Tensor, what: str, repeat: Callable[[int, int], str]
) -> Fault | None:
    """A row that holds infinity or no number; arguments are those of ``beyond``."""
    lost = (~torch.isfinite(table)).any(1)
    if not bool(lost.any()):
        return None
    first = int(line[lost][0])
    return fault(
        "not-a-number",
        "wrong",
        f"{what} at position {first:,} is infinite or no number, and so at {int(lost.sum()):,} of "
        f"{len(line):,} positions",
        first,
        repeat(first, first),
    )


def beyond(
    table: Tensor, line: Tensor, what: str, repeat: Callable[[int, int], str]
) -> Fault | None:
    """Rows that repeat where no encoding does: clamped, wrapped, stopped, shared.

    Args:
        table: ``[positions, width]`` at the positions ``line``, which rise.
        line: Those positions.
        what: What a row is, in words.
        repeat: From two positions, code that shows that they agree.
    """
    if (lost := broken(table, line, what, repeat)) is not None:
        return lost
    sizes = table.abs().amax(1).clamp(min=1e-30)  # of each row: xPos' grow and shrink
    still = (table.diff(dim=0).abs().amax(1) <= APART * sizes[1:]).nonzero().flatten()
    if not len(still):
        return _wrapped(table, line, what, repeat)
    first = int(still[0])
    last_same = first + 1
    while (
        last_same < len(table)
        and (table[last_same] - table[first]).abs().max() <= APART * sizes[first]
    ):
        last_same += 1
    p, q = int(line[first]), int(line[first + 1])
    if last_same == len(table) and first > 0:
        zero = not table[first].any() or _is_unrotated(table[first])
        name, words = ("stops", "nothing is encoded") if zero else ("clamped", f"{what} stays")
        return fault(
            name,
            "wrong",
            f"from position {p:,} on {words}: tokens at {p:,} and {int(line[-1]):,} are one to "
            "the model",
            p,
            repeat(p, int(line[-1])),
        )
    if p >= 256 and bool((line[still] >= 256).all()):
        kind = "bfloat16" if p < 2048 else "float16" if p < 65_000 else "float32"
        if kind != "float32" and not _share_as_in(kind, line, still):
            return _shared(p, q, len(still), repeat)
        return fault(
            "positions-in-16-bits" if kind != "float32" else "precision-lost",
            "lossy",
            f"positions {p:,} and {q:,} receive the same: positions are held in {kind}, in which "
            "they are one number",
            p,
            repeat(p, q),
        )
    return _shared(p, q, len(still), repeat)


def _shared(p: int, q: int, neighbors: int, repeat: Callable[[int, int], str]) -> Fault:
    return fault(
        "positions-shared",
        "wrong",
        f"positions {p:,} and {q:,} receive the same, and {neighbors} neighbors in all",
        p,
        repeat(p, q),
    )


def _share_as_in(kind: str, line: Tensor, still: Tensor) -> bool:
    """Whether most neighbors that are one number in a dtype receive the same, and no others."""
    held = line.to(getattr(torch, kind))
    one = (held[1:] == held[:-1]).nonzero().flatten()
    return bool(torch.isin(still, one).all()) and int(torch.isin(one, still).sum()) * 2 > len(one)


def parting(line: Tensor, off: Tensor) -> int | None:
    """The first row that is another function's, by an error that no rounding explains.

    What rounding does to angles grows as positions do, from the first on; a sudden error is none
    of it.

    Example:
        >>> parting(torch.tensor([100, 200, 300]), torch.tensor([1e-6, 2e-6, 0.5]))
        2
    """
    positions = line.double().clamp(min=1)
    grown = (off / positions).clamp(min=2.0**-22)
    before = torch.cat((grown[:1], grown.cummax(0).values[:-1]))
    sudden = (grown > SUDDEN * before) & (off > 0.05) & (positions >= 64) | ~torch.isfinite(off)
    return int(sudden.nonzero()[0]) if bool(sudden.any()) else None


def _is_unrotated(row: Tensor) -> bool:
    half = len(row) // 2
    return bool(((row[:half] - 1).abs() < 1e-7).all() and (row[half:].abs() < 1e-7).all())


def _wrapped(
    table: Tensor, line: Tensor, what: str, repeat: Callable[[int, int], str]
) -> Fault | None:
    """A row that comes back, though none of the encodings is periodic in all its channels."""
    table = table / table.abs().amax(1, keepdim=True).clamp(min=1e-30)
    key = (table * 1e5).round()
    _, inverse, counts = key.unique(dim=0, return_inverse=True, return_counts=True)
    if bool((counts == 1).all()):
        return None
    group = int((counts[inverse] > 1).nonzero()[0])
    same = (inverse == inverse[group]).nonzero().flatten()
    for other in same[1:]:
        one, two = int(line[group]), int(line[int(other)])
        if (table[group] - table[int(other)]).abs().max() > 1e-6:
            continue
        return fault(
            "wrapped" if one < 4 else "positions-shared",
            "wrong",
            f"position {two:,} receives what position {one:,} does: {what} begins anew",
            two,
            repeat(one, two),
        )
    return None


def distinct_in(table: Tensor, dtype: torch.dtype) -> int:
    """How many rows differ once rounded.

    Example:
        >>> distinct_in(torch.tensor([[1.0], [1.0001]]), torch.bfloat16)
        1
    """
    return len(table.to(dtype).unique(dim=0))


def is_held_in(table: Tensor) -> str | None:
    """The 16-bit dtype that holds every number of a table exactly, if one does."""
    varied = table[(table.abs() > 1e-3) & ((table.abs() - 1).abs() > 1e-2)]
    if len(varied) < 16:
        return None
    for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        if torch.equal(varied.to(dtype).double(), varied.double()):
            return name
    return None
