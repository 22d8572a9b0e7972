"""Which keys a bias hides: later ones, those beyond a window, or others than a mask should."""

from dataclasses import dataclass

import torch
from torch import Tensor

FAR_BELOW = 5000.0
"""Numbers so far below the largest of a head leave a key no weight, as -10000 does."""

NO_EARLIER = "hides every key before each query"


@dataclass(frozen=True)
class Mask:
    """What a bias hides."""

    said: str  # which keys, in words that follow "it"
    slip: bool = False  # whether no mask is meant to hide these
    doubtful: bool = False  # whether few are, so that it is worth knowing


def hidden(given: Tensor) -> Tensor:
    """Which keys a bias ``[heads, q_len, k_len]`` leaves no weight.

    Those of a bias that falls so far step by step are not hidden, but far; and the largest of a
    row are not, where others of it are as far below them.
    """
    made = given.double()
    top = made.masked_fill(~made.isfinite(), -1e8).amax((1, 2), keepdim=True)
    low, lost = made < top - FAR_BELOW, made < -1e8
    between = low.logical_not() & (made < top - FAR_BELOW / 2)
    low = low & ~between.any(2, keepdim=True).any(1, keepdim=True)
    best = made >= made.amax(2, keepdim=True) - FAR_BELOW
    return lost | low & (~best | best.all(2, keepdim=True))


def mask(away: Tensor) -> Mask:
    """What is hidden of a square ``[heads, n, n]``.

    Some heads may see later keys alone where others see earlier ones.
    """
    if bool((away == away[:1]).all()):
        return _of_one(away[0])
    each = [_of_one(head) for head in away]
    others = any("after each query" in found.said for found in each)
    for number, found in enumerate(each):
        if found.slip and not (others and found.said == NO_EARLIER):
            return Mask(f"{found.said} (in head {number})", slip=True)
    return Mask("hides other keys in each head", doubtful=any(x.slip or x.doubtful for x in each))


def _of_one(away: Tensor) -> Mask:
    """The same of one head."""
    if not bool(away.any()):
        return Mask("hides no key")
    last = len(away) - 1
    index = torch.arange(len(away))
    apart = index[:, None] - index
    seen = apart[~away].unique()  # the distances that are, if distance is all that counts
    if bool((torch.isin(apart, seen) & away).any()):
        if none := away.all(1).nonzero().flatten().tolist():
            return Mask(f"hides every key of the query at {none[0]}", slip=True)
        return Mask("hides keys by their places, as blocks do")
    if 0 not in seen:
        others = len(seen) < 2 * last
        beside = "and others beside it" if others else "and no others"
        return Mask(f"hides each query's own key, {beside}", slip=others, doubtful=not others)
    back, ahead = int(seen.max()), -int(seen.min())
    if back == ahead == 0:
        return Mask("hides all keys but each query's own", doubtful=True)
    if back == 0:
        return Mask(NO_EARLIER, slip=True)
    if len(seen) <= back + ahead:
        return Mask("hides some keys by their distance, between others")
    sides = [f"more than {back} before each query"] if back < last else []
    if ahead < last:
        sides.append(f"more than {ahead} after each query" if ahead else "after each query")
    leaks = back == last and 0 < ahead < last
    return Mask(f"hides the keys {' and '.join(sides)}, and no others", slip=leaks)
