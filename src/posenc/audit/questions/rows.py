"""What can be asked of any table: row p is what position p receives."""

import torch
from torch import Tensor

from posenc.audit.questions.faults import fault
from posenc.audit.report import Fault

SUDDEN = 16.0  # how many times as much for each position an error may be as those before
APART = 1e-7  # rows closer than this are taken to be one, beside a size of one
ANOTHER = 0.25  # what sines are off by where nobody would call them equal


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; infinite where one has a number and the other none."""
    off = (one.double() - other.double()).abs()
    alike = (one == other) | one.isnan() & other.isnan()
    return off.masked_fill(alike, 0.0).nan_to_num(torch.inf, torch.inf).max().item()


def held_against(ours: str, line: Tensor, errors: Tensor) -> str:
    """How far rows are from ours, as far as it is the same function, in words."""
    off = errors.abs().amax(1)
    end = parting(line, off)
    worst, last = off[:end].max().item(), int(line[:end][-1])
    if worst > ANOTHER:
        away = f"up to {worst:.1g} away from it by position {last:,}"
        return f"like {ours} near position 0 alone, and {away}"
    return f"equal to {ours} within {worst:.1g} to position {last:,}"


def beyond(table: Tensor, line: Tensor, what: str) -> Fault | None:
    """A fault where rows ``[positions, width]`` at rising positions repeat, or are no numbers."""
    lost = line[(~torch.isfinite(table)).any(1)]
    if len(lost):
        said = f"{what} is infinite or no number at {len(lost):,} of {len(line):,} positions"
        return fault("not-a-number", said, int(lost[0]))
    sizes = table.abs().amax(1).clamp(min=1e-30)  # of each row: xPos' grow and shrink
    still = (table.diff(dim=0).abs().amax(1) <= APART * sizes[1:]).nonzero().flatten()
    if not len(still):
        return _wrapped(table / sizes[:, None], line, what)
    first = int(still[0])
    p, q, last = int(line[first]), int(line[first + 1]), int(line[-1])
    rest = (table[first:] - table[first]).abs().amax(1) <= APART * sizes[first]
    if first > 0 and bool(rest.all()):
        unrotated = torch.arange(table.shape[1]) < table.shape[1] // 2  # of cosines and sines
        zero = not table[first].any() or apart(table[first], unrotated) < APART
        name, words = ("stops", "nothing is encoded") if zero else ("clamped", f"{what} stays")
        return fault(name, f"from position {p:,} on {words}: {p:,} and {last:,} are one", p)
    shared = f"positions {p:,} and {q:,} receive the same"
    for kind in (torch.float32, torch.float16, torch.bfloat16):  # of fewest equal numbers first
        if _share_as_in(kind, line, still):
            said = f"{shared}: positions are held in {kind}, in which they are one number"
            if kind == torch.float32:
                return fault("precision-lost", said, p)
            return fault("positions-in-16-bits", said, p, severity="wrong")
    return fault("positions-shared", f"{shared}, and {len(still)} neighbors in all", p)


def _share_as_in(kind: torch.dtype, line: Tensor, still: Tensor) -> bool:
    """Whether most neighbors that are one number in a dtype receive the same, and no others."""
    held = line.to(kind)
    one = (held[1:] == held[:-1]).nonzero().flatten()
    return bool(torch.isin(still, one).all()) and int(torch.isin(one, still).sum()) * 2 > len(one)


def _wrapped(table: Tensor, line: Tensor, what: str) -> Fault | None:
    """A fault where a row comes back: no encoding is periodic in all its channels."""
    first: dict[bytes, int] = {}
    for row, numbers in enumerate(((table * 1e5).round() + 0.0).numpy()):  # 0 for −0
        before = first.setdefault(numbers.tobytes(), row)
        if before < row and apart(table[before], table[row]) <= 1e-6:
            p, q = int(line[before]), int(line[row])
            said = f"position {q:,} receives what position {p:,} does: {what} begins anew"
            return fault("wrapped" if p < 4 else "positions-shared", said, q)
    return None


def parting(line: Tensor, off: Tensor) -> int | None:
    """The first row that is another function's, by an error that no rounding explains."""
    # what rounding does to angles grows as positions do, from the first on
    positions = line.double().clamp(min=1)
    grown = (off / positions).clamp(min=2.0**-22)
    before = torch.cat((grown[:1], grown.cummax(0).values[:-1]))
    sudden = (grown > SUDDEN * before) & (off > 0.05) & (positions >= 64) | ~torch.isfinite(off)
    return int(sudden.nonzero()[0]) if bool(sudden.any()) else None


def is_held_in(table: Tensor) -> str:
    """The 16-bit dtype that holds every number of a table exactly; empty if none does."""
    varied = table[(table.abs() > 1e-3) & ((table.abs() - 1).abs() > 1e-2)]
    for name in ("bfloat16", "float16") if len(varied) >= 16 else ():
        if torch.equal(varied.to(getattr(torch, name)).double(), varied.double()):
            return name
    return ""


def lost_neighbors(made: Tensor, exact: Tensor) -> int:
    """How many neighbors receive the same that would differ if each was rounded once."""
    same, right = (each.bfloat16().diff(dim=0).abs().amax(1) == 0 for each in (made, exact))
    return int((same & ~right).sum())
