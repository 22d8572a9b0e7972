"""Which rows of a table a bias reads at each distance: T5's buckets, or one row a distance."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc.audit.identity import masks
from posenc.numerics.buckets import t5_buckets


@dataclass(frozen=True)
class Buckets:
    """A bias that is looked up by T5's buckets."""

    index: Tensor  # the row of the table that each distance −n … n reads; −1 where keys are hidden
    rows: int  # number of rows
    kind: str  # ``t5`` with its numbers, ``clipped`` of one row a distance, or what slipped
    max_distance: int  # of the fitted rule; of one row a distance, the last that has its own
    bidirectional: bool  # of the fitted rule
    off: int  # at how many distances another row is read than T5 reads
    first_off: int = 0

    @property
    def knows_later_keys(self) -> bool:
        """Whether keys after the query are hidden, or read the rows that T5's read."""
        n = (len(self.index) + 1) // 2
        later = self.index[: n - 1]
        return self.bidirectional or bool((later <= 0).all())

    @property
    def compared(self) -> int:
        """How many distances are held against T5's, which are none that are hidden."""
        n = (len(self.index) + 1) // 2
        asked = self.index if self.bidirectional else self.index[n - 1 :]
        return int((asked >= 0).sum())

    @property
    def said(self) -> str:
        """One line."""
        if self.kind == "clipped":
            past = "" if self.bidirectional else " to the past"
            return f"a learned bias, one number for each distance{past} up to {self.max_distance}"
        sides = "both directions" if self.bidirectional else "the past"
        return (
            f"T5's bias, {self.rows} buckets for {sides}, maximal distance {self.max_distance}"
            if self.kind == "t5"
            else ""
        )

    def ours(self, heads: int) -> str:
        """Ours that it equals for so many heads, as Python."""
        if (self.rows, self.max_distance) == (32, 128):
            said = [] if heads == 12 else [str(heads)]
            said += [] if self.bidirectional else ["decoder=True"]
            return f"posenc.recipes.t5({', '.join(said)})"
        return (
            f"posenc.T5Bias({heads}, {self.rows}, {self.max_distance}, "
            f"bidirectional={self.bidirectional})"
        )


def looked_up(square: Tensor, module: object) -> tuple[Tensor, int] | None:
    """For the distances −(n − 1) … n − 1, which row of an embedding the bias reads, and how many
    rows it has; None if it reads none, or by more than distance. Distances at which all heads are
    hidden read the row −1.

    ``square`` is the bias ``[heads, n, n]`` of a module with a table ``[rows, heads]``.
    """
    if not isinstance(module, nn.Module):
        return None
    n = square.shape[-1]
    profile = torch.cat((square[:, 0, 1:].flip(1), square[:, :, 0]), 1).T  # from −(n − 1) on
    away = masks.hidden(profile.T[:, None])[:, 0].all(0)
    if bool(away[n - 1 : n + 1].any()):  # nothing near is left to be known by
        return None
    for weight in module.parameters():
        if weight.ndim != 2 or weight.shape[0] < 4:
            continue
        for table in (weight, weight.T):
            if table.shape[1] != len(square):
                continue
            gaps = torch.cdist(profile.masked_fill(away[:, None], 0.0), table.detach().double())
            least, index = gaps.min(1)
            least, index = least.masked_fill(away, 0.0), index.masked_fill(away, -1)
            if bool((least < 1e-4 * table.abs().max().item()).all()):
                if len(profile) != 2 * n - 1 or _strays(square, profile.T, away):
                    return None
                return index, len(table)
    return None


def _strays(square: Tensor, profile: Tensor, away: Tensor) -> bool:
    """Whether a square reads otherwise than its first row and column, where keys are seen."""
    n = square.shape[-1]
    apart = torch.arange(n)[:, None] - torch.arange(n) + n - 1
    off = (square - profile[:, apart]).abs() > 1e-4 * profile[:, ~away].abs().max()
    return bool((off & ~masks.hidden(square) & ~away[apart]).any())


def buckets(index: Tensor, rows: int) -> Buckets:
    """The rule by which distances read rows, held against T5's."""
    n = (len(index) + 1) // 2
    distance = torch.arange(-(n - 1), n)
    best: tuple[int, str, int, bool, int] | None = None
    for kind, bidirectional, most in _rules(rows):
        sign = -1 if kind == "turned" else 1
        ours = t5_buckets(sign * distance, rows, most, bidirectional)
        wrong = (ours != index) & (index >= 0)
        if not bidirectional:
            wrong = wrong & (distance >= 0)  # what a causal mask hides does not count
        off = int(wrong.sum())
        first = int(distance[wrong].abs().min()) if off else 0
        if best is None or off < best[0]:
            best = off, kind, most, bidirectional, first
    assert best is not None
    off, kind, most, bidirectional, first = best
    if off and (found := _one_a_distance(index, rows)) is not None:
        return found
    return Buckets(index, rows, kind if off == 0 else "off", most, bidirectional, off, first)


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
            most = max(own, rows - 1 - own)
            return Buckets(index, rows, "clipped", most, bidirectional, 0)
    return None


def _rules(rows: int) -> Iterator[tuple[str, bool, int]]:
    for kind in ("t5", "turned"):
        for bidirectional in (True, False):
            side = rows // 2 if bidirectional else rows
            if (bidirectional and rows % 2) or side < 2:
                continue
            for most in (128, 64, 256, 32, 512, 1024, 20, 16, 800, 2048):
                if most > side // 2:
                    yield kind, bidirectional, most
