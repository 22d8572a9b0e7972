"""Which rows of a table a bias reads at each distance: T5's buckets, or one row a distance."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc.audit.identity import masks
from posenc.numerics.buckets import t5_buckets

DISTANCES = (128, 64, 256, 32, 512, 1024, 20, 16, 800, 2048)
"""Maximal distances that are tried, most usual first."""


@dataclass(frozen=True)
class Buckets:
    """A bias that is looked up by T5's buckets, or by one row a distance."""

    index: Tensor  # the row that each distance −n … n reads; −1 where keys are hidden
    rows: int
    kind: str  # "t5", "clipped" of one row a distance, "turned" or "off"
    max_distance: int  # of the fitted rule; of one row a distance, the last that has its own
    bidirectional: bool
    off: int  # at how many distances another row is read than T5 reads
    first_off: int = 0  # the nearest of them

    @property
    def past(self) -> Tensor:
        """The rows of keys up to the query's."""
        return self.index[len(self.index) // 2 :]

    @property
    def knows_later_keys(self) -> bool:
        """Whether keys after the query are hidden, or read the rows that T5's read."""
        return self.bidirectional or bool((self.index[: len(self.index) // 2] <= 0).all())

    @property
    def compared(self) -> int:
        """How many distances are held against T5's, which are none that are hidden."""
        return int(((self.index if self.bidirectional else self.past) >= 0).sum())

    @property
    def said(self) -> str:
        """One line."""
        if self.kind == "clipped":
            past = "" if self.bidirectional else " to the past"
            return f"a learned bias, one number for each distance{past} up to {self.max_distance}"
        if self.kind != "t5":
            return ""
        sides = "both directions" if self.bidirectional else "the past"
        return f"T5's bias, {self.rows} buckets for {sides}, maximal distance {self.max_distance}"

    def ours(self, heads: int) -> str:
        """Ours that it equals for so many heads, as Python."""
        if (self.rows, self.max_distance) == (32, 128):
            said = [] if heads == 12 else [str(heads)]
            said += [] if self.bidirectional else ["decoder=True"]
            return f"posenc.recipes.t5({', '.join(said)})"
        sizes = f"{heads}, {self.rows}, {self.max_distance}"
        return f"posenc.T5Bias({sizes}, bidirectional={self.bidirectional})"


def looked_up(square: Tensor, module: nn.Module) -> tuple[Tensor, int] | None:
    """For the distances −(n − 1) … n − 1, which row of a table ``[rows, heads]`` of a module its
    bias ``[heads, n, n]`` reads, and how many rows there are.

    None if it reads none, or by more than distance. Distances that all heads hide read row −1.
    """
    n = square.shape[-1]
    profile = torch.cat((square[:, 0, 1:].flip(1), square[:, :, 0]), 1).T  # from −(n − 1) on
    away = masks.hidden(profile.T[:, None])[:, 0].all(0)
    if bool(away[n - 1 : n + 1].any()):  # nothing near is left to be known by
        return None
    tables = (t for p in module.parameters() if p.ndim == 2 and len(p) > 3 for t in (p, p.T))
    for table in (t for t in tables if t.shape[1] == len(square)):
        gaps = torch.cdist(profile.masked_fill(away[:, None], 0.0), table.detach().double())
        least, index = gaps.min(1)
        if bool((least.masked_fill(away, 0.0) < 1e-4 * table.abs().max().item()).all()):
            if len(profile) != 2 * n - 1 or _strays(square, profile.T, away):
                return None
            return index.masked_fill(away, -1), len(table)
    return None


def _strays(square: Tensor, profile: Tensor, away: Tensor) -> bool:
    """Whether a square reads otherwise than its first row and column, where keys are seen."""
    n = square.shape[-1]
    apart = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    off = (square - profile[:, apart]).abs() > 1e-4 * profile[:, ~away].abs().max()
    return bool((off & ~masks.hidden(square) & ~away[apart]).any())


def buckets(index: Tensor, rows: int) -> Buckets:
    """The rule by which distances read rows, held against T5's."""
    found = min((rule for rule in _rules(index, rows)), key=lambda rule: rule.off)
    return found if not found.off else _one_a_distance(index, rows) or found


def _rules(index: Tensor, rows: int) -> Iterator[Buckets]:
    """T5's rules, and those of distances of the other sign."""
    n = (len(index) + 1) // 2
    distance = torch.arange(-(n - 1), n)
    for kind, sign in (("t5", 1), ("turned", -1)):
        for bidirectional in (True, False):
            side = rows // 2 if bidirectional else rows
            if (bidirectional and rows % 2) or side < 2:
                continue
            for most in (most for most in DISTANCES if most > side // 2):
                ours = t5_buckets(sign * distance, rows, most, bidirectional)
                wrong = (ours != index) & (index >= 0)
                if not bidirectional:
                    wrong = wrong & (distance >= 0)  # what a causal mask hides does not count
                off = int(wrong.sum())
                first = int(distance[wrong].abs().min()) if off else 0
                name = "off" if off else kind
                yield Buckets(index, rows, name, most, bidirectional, off, first)


def _one_a_distance(index: Tensor, rows: int) -> Buckets | None:
    """Rows in the order of distances, the first and the last of them for all that lie beyond.

    What a causal mask hides reads any row, where keys up to the query have all that there are.
    """
    n = (len(index) + 1) // 2
    distance, own = torch.arange(-(n - 1), n), int(index[n - 1])
    for sign in (1, -1):
        same = ((own + sign * distance).clamp(0, rows - 1) == index) | (index < 0)
        bidirectional = 0 < own < rows - 1
        if bool((same if bidirectional else same[n - 1 :]).all()):
            return Buckets(index, rows, "clipped", max(own, rows - 1 - own), bidirectional, 0)
    return None
