"""Which keys a bias hides: later ones, those beyond a window, or others than a mask should."""

from dataclasses import dataclass

import torch
from torch import Tensor

FAR_BELOW = 5000.0
"""Numbers so far below the largest of a head leave a key no weight, as -10000 does."""


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
    """What is hidden of a square ``[heads, n, n]``."""
    if not bool(away.any()):
        return Mask("hides no key")
    if bool((away == away[:1]).all()):
        return _of_one(away[0])
    each, (back, ahead) = [_of_one(head) for head in away], _one_way(away)
    opposite = bool(back.any() and ahead.any())
    for number, found in enumerate(each):
        if found.slip and not (opposite and ahead[number]):
            return Mask(f"{found.said} (in head {number})", slip=True)
    if opposite:
        return Mask(
            "hides the keys after each query in some heads, and those before it in others",
            doubtful=True,
        )
    return Mask("hides other keys in each head", doubtful=any(one.doubtful for one in each))


def _one_way(away: Tensor) -> tuple[Tensor, Tensor]:
    """Which heads look back alone, and which ahead alone; all see each query's own key."""
    later = torch.ones(away.shape[-2:], dtype=torch.bool).triu(1)
    no_later, no_earlier = away[:, later].all(1), away[:, later.T].all(1)
    own = ~away.diagonal(0, 1, 2).any(1)
    return own & no_later & ~no_earlier, own & no_earlier & ~no_later


def _of_one(away: Tensor) -> Mask:
    """The same of one head."""
    past, later = away[:, 0], away[0]  # at the distances 0, 1, …, if distance is all that counts
    index = torch.arange(len(away))
    apart = index[:, None] - index
    if not torch.equal(away, torch.where(apart >= 0, past[apart.abs()], later[apart.abs()])):
        return _by_place(away)
    own, before, after = bool(past[0]), past[1:], later[1:]
    if own:
        sides = [("before", before), ("after", after)]
        others = " and ".join(f"those {side}" for side, far in sides if bool(far.any()))
        if not others:
            return Mask("hides each query's own key, and no others", doubtful=True)
        return Mask(f"hides each query's own key, and {others} it", slip=True)
    if bool(before.all()) and bool(after.all()):
        return Mask("hides all keys but each query's own", doubtful=True)
    if bool(before.all()):
        return Mask("hides every key before each query", slip=True)
    back, ahead = (int((~far).cumprod(0).sum()) for far in (before, after))
    if not (bool(before[back:].all()) and bool(after[ahead:].all())):
        return Mask("hides some keys by their distance, between others")
    if back == len(before):
        if ahead == 0:
            return Mask("hides the keys after each query, and no others")
        leaked = "the next one" if ahead == 1 else f"the next {ahead}"
        return Mask(f"hides keys after each query, but not {leaked}", slip=True)
    if ahead == 0:
        return Mask(f"hides the keys after each query, and those more than {back} before it")
    if ahead == len(after):
        return Mask(f"hides the keys more than {back} before each query, and none after it")
    return Mask(f"hides the keys more than {back} before each query and more than {ahead} after it")


def _by_place(away: Tensor) -> Mask:
    """Of what goes by more than distance, as blocks do."""
    none = away.all(1).nonzero().flatten().tolist()
    if none:
        return Mask(f"hides every key of the query at {none[0]}", slip=True)
    return Mask("hides keys by their places, as blocks do")
