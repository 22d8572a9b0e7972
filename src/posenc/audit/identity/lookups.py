"""Which rows of a table a bias reads at each distance: T5's buckets, or one row a distance."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from posenc.audit.identity import masks
from posenc.encodings.scores import T5Bias
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
    off: int = 0  # at how many distances another row is read than T5 reads
    first_off: int = 0  # the nearest of them
    compared: int = 0  # how many distances were held against T5's

    @property
    def past(self) -> Tensor:
        """The rows of keys up to the query's."""
        return self.index[len(self.index) // 2 :]

    @property
    def later(self) -> Tensor:
        """The rows of the query's key and those after it."""
        return self.index[: len(self.index) // 2 + 1].flip(0)

    @property
    def knows_later_keys(self) -> bool:
        """Whether keys after the query are hidden, or read the rows that T5's read."""
        return self.bidirectional or bool((self.later[1:] <= 0).all())

    @property
    def said(self) -> str:
        both, most = self.bidirectional, self.max_distance
        if self.kind == "clipped":
            past = "" if both else " to the past"
            return f"a learned bias, one number for each distance{past} up to {most}"
        sides = "both directions" if both else "the past"
        told = f"T5's bias, {self.rows} buckets for {sides}, maximal distance {most}"
        return told if self.kind == "t5" else ""

    def ours(self, heads: int) -> str:
        """Ours that it equals for so many heads, as Python."""
        if (self.rows, self.max_distance) != (32, 128):
            ours = T5Bias(heads, self.rows, self.max_distance, self.bidirectional)
            return f"posenc.{ours!r}".replace("heads=", "")
        said = [str(heads)] * (heads != 12) + ["decoder=True"] * (not self.bidirectional)
        return f"posenc.recipes.t5({', '.join(said)})"


def looked_up(square: Tensor, module: nn.Module) -> tuple[Tensor, int] | None:
    """The row of a module's table ``[rows, heads]`` that its bias ``[heads, n, n]`` reads at each
    distance −(n − 1) … n − 1, −1 where all heads hide it, and how many rows there are.
    """
    n = square.shape[-1]
    if square.shape[-2] != n:
        return None
    profile = torch.cat((square[:, 0, 1:].flip(1), square[:, :, 0]), 1).T  # from −(n − 1) on
    away = masks.hidden(profile.T[:, None])[:, 0].all(0)
    if bool(away[n - 1 : n + 1].any()):  # nothing near is left to be known by
        return None
    alike = profile.T[:, torch.arange(n)[:, None] - torch.arange(n) + n - 1]
    tables = (t for p in module.parameters() if p.ndim == 2 and len(p) > 3 for t in (p, p.T))
    for table in (t.detach().double() for t in tables if t.shape[1] == len(square)):
        least, index = torch.cdist(profile.masked_fill(away[:, None], 0.0), table).min(1)
        room = 1e-4 * table.abs().max()
        strays = ((square - alike).abs() > room) & ~masks.hidden(square)
        if bool((least.masked_fill(away, 0.0) < room).all()) and not bool(strays.any()):
            return index.masked_fill(away, -1), len(table)
    return None


def buckets(index: Tensor, rows: int) -> Buckets:
    """The rule by which distances read rows, held against T5's."""
    n = (len(index) + 1) // 2
    distance, found = torch.arange(-(n - 1), n), []
    for kind, most, bidirectional, read in _rules(distance, index, rows):
        seen = (index >= 0) & (bidirectional | (distance >= 0))  # which no causal mask hides
        wrong = distance[(read != index) & seen].abs()
        if not len(wrong):
            return Buckets(index, rows, kind, most, bidirectional)
        if kind != "clipped":
            off = len(wrong), int(wrong.min()), int(seen.sum())
            found.append(Buckets(index, rows, "off", most, bidirectional, *off))
    return min(found, key=lambda rule: rule.off)


def _rules(distance: Tensor, index: Tensor, rows: int) -> Iterator[tuple[str, int, bool, Tensor]]:
    """T5's rules, those of the other sign, and one row a distance to the first and last of rows."""
    for (kind, sign), bidirectional in product((("t5", 1), ("turned", -1)), (True, False)):
        side = rows // 2 if bidirectional else rows
        if side < 2 or (bidirectional and rows % 2):
            continue
        for most in (most for most in DISTANCES if most > side // 2):
            yield kind, most, bidirectional, t5_buckets(sign * distance, rows, most, bidirectional)
    own = int(index[len(index) // 2])
    for sign in (1, -1):
        read = (own + sign * distance).clamp(0, rows - 1)
        yield "clipped", max(own, rows - 1 - own), 0 < own < rows - 1, read
