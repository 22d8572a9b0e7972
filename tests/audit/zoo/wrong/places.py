"""What is right token by token, and misreads positions that are said in another way."""

import torch
from tests.audit.zoo.arithmetic import interleaved, powers
from tests.audit.zoo.specimen import slip, wrong
from torch import nn


class Said(nn.Module):
    """The paper's sum at positions that are said; the others change a line of it."""

    batch_first, dim = True, 32

    def table(self, positions):
        angles = positions[..., None].double() * powers(self.dim, dtype=torch.float64)
        return interleaved(angles)

    def read(self, positions):
        return positions

    def forward(self, x, positions=None):
        """x: [batch, seq, dim]"""
        places = torch.arange(x.shape[1]) if positions is None else self.read(positions)
        return x + self.table(places).to(x.dtype)


class Sorted(Said):
    """Positions in order, whatever order they came in."""

    def read(self, positions):
        return positions.sort(-1).values


class Started(Said):
    """The same by a first position."""

    def start(self, offset, length):
        return offset

    def forward(self, x, offset=0):
        """x: [batch, seq, dim]"""
        line = torch.arange(x.shape[1]) + self.start(offset, x.shape[1])
        return x + self.table(line).to(x.dtype)


class StartEnds(Started):
    """A first position of 50 and more is 50."""

    def start(self, offset, length):
        return min(offset, 50)


WRONG = [
    wrong(Sorted, "sorts positions", "positions-misread"),
    wrong(StartEnds, "late starts end", "positions-misread"),
    slip(Said, "decodes where the first row is", "first-row-for-all",
         read=lambda s, of, p: p[:1].expand_as(p) if p.ndim > 1 and p.shape[1] == 1 else p),
    slip(Started, "slices to its end", "truncated-silently",  # nothing is left to add beyond
         forward=lambda s, of, x, start=0: x + s.table(
             torch.arange(128))[start : start + x.shape[1]].to(x.dtype)),
]  # fmt: skip
