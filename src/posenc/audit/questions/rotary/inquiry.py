"""A subject that rotates, with what several questions need of it."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import most_taken
from posenc.audit.adapters.rotary_view import HEADS, RotaryView
from posenc.audit.identity import rotations, structures
from posenc.audit.questions import rows
from posenc.audit.report import NotAskedError
from posenc.encodings.queries_keys import Rotary
from posenc.frequencies import Schedule

ROUNDING = 1e-5

NEAR = 9
"""So many first tokens are held to what they are in a short row."""


@dataclass
class RotaryInquiry:
    """A subject that rotates, with what several questions need of it."""

    view: RotaryView
    length: int
    expected: Rotary | None = None
    errors: dict[int, float] = field(default_factory=dict)

    @cached_property
    def matrices(self) -> Tensor:
        """R(0) … R(n − 1) of queries, float64."""
        near = structures.NEAR if self.view.dim <= 128 else 16
        return self.view.matrices(min(near, max(self.view.built_for or near, 8)))

    @cached_property
    def keys(self) -> Tensor:
        """R(0) … R(n − 1) of keys, float64."""
        return self.view.matrices(len(self.matrices), side="k")

    @cached_property
    def shape(self) -> structures.Structure:
        """Its pairs and frequencies; of keys, where queries stay as they are."""
        found = structures.structure(self.matrices)
        if not found.firsts and self.view.sees_keys:
            return structures.structure(self.view.matrices(structures.NEAR, side="k"))
        return found

    @cached_property
    def rotation(self) -> rotations.Rotation | None:
        """The schedule that it follows, if it is one that is known."""
        return rotations.identify(self.shape, self.schedule, coarse=self.coarse)

    @cached_property
    def side(self) -> str:
        """The side that turns: queries, unless only keys do."""
        return "q" if structures.structure(self.matrices).firsts or not self.view.sees_keys else "k"

    @cached_property
    def coarse(self) -> bool:
        """Whether its cosines are numbers of 16 bits."""
        moving = self.matrices[1:][:, self.shape.firsts, self.shape.firsts]
        return rows.is_held_in(moving) is not None

    @property
    def schedule(self) -> Schedule | None:
        """The schedule that the configuration beside it means."""
        return self.expected.frequencies if self.expected is not None else None

    @property
    def rows_show(self) -> str:
        """Code that calls it at some positions."""
        return f"import torch\nx = torch.randn(1, 4, 64, {self.view.dim})  # {layouts.SAID['bhsd']}"

    def table_at(self, line: list[int]) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the pairs at positions, as content shows them."""
        made = self.view.at(line, self.shape.probe(), self.side)
        return self.shape.table(made)

    @cached_property
    def line(self) -> list[int]:
        """Positions at which rows are held against each other and against exact ones."""
        n, built = self.length, self.view.built_for or self.length
        if not self.view.moves and built * self.view.dim * HEADS > 2**25:
            built = 512
        some = {*range(64), *range(254, 260), *range(1022, 1027), *range(2046, 2052)}
        some |= {p + k for p in (4095, 8191, n - 3) for k in range(3) if p + k < n}
        some = {p for p in some if p < n}
        for edge in {built, 2 * built}:
            some |= {edge + k for k in (-2, -1, 0, 1, 2)}
        return sorted(p for p in some if p >= 0)

    @cached_property
    def far(self) -> tuple[list[int], Tensor, str]:
        """As many of these positions as it takes, its rows there, and where it refuses."""
        line = self.line
        try:
            return *self._whole(line), ""
        except NotAskedError as reason:
            refused = str(reason)
        taken = most_taken(lambda n: self._takes(line[:n]), len(line) - 1)
        if not taken:
            raise NotAskedError(f"it takes no positions: {refused}")
        before = line[taken - 1]
        between = most_taken(lambda n: self._takes([before + n]), line[taken] - before - 1)
        line = line[:taken] + ([before + between] if between else [])
        return *self._whole(line), refused

    def _takes(self, line: list[int]) -> bool:
        """Whether it answers at all of these positions."""
        try:
            self._rows(line)
        except NotAskedError:
            return False
        return True

    def _whole(self, line: list[int]) -> tuple[list[int], Tensor]:
        """All positions between these, where they can be asked in one call, and their rows."""
        every = list(range(line[-1] + 1))
        table = self._rows(line)
        if self.view.moves == "offset" or len(every) * self.view.dim * HEADS > 2**23:
            return line, table
        try:
            return every, self._rows(every)
        except NotAskedError:
            return line, table

    def _rows(self, line: list[int]) -> Tensor:
        """Cosines and sines; positions beyond what it is built for in a call of their own."""
        built = self.view.built_for or self.length
        parts = [p for p in line if p < built], [p for p in line if p >= built]
        made = [torch.cat(self.table_at(part), -1) for part in parts if part]
        return torch.cat(made)

    @property
    def identity(self) -> str:
        """One line."""
        found = self.rotation
        if found is None:
            return ""
        line = [p for p in self.far[0] if p < self.length] or self.far[0]
        line = line[: self.parting]
        off = self.errors_at(line).abs().max().item()
        where = "" if self.shape.sense > 0 else " turned backwards, by −p at position p,"
        if (begin := self.shape.begin) != 0:
            where += f" from position {begin} on," if begin else " but for its first angle,"
        several = f" ({self.view.applied})" if self.view.is_one_of_several else ""
        return f"{found.said}: {rows.held_against(found.ours + where, off, line[-1])}{several}"

    def errors_at(self, line: list[int]) -> Tensor:
        """By how much the first rows are off, one row for each of the positions ``line``."""
        assert self.rotation is not None
        made = self.far[1][: len(line)] / self.shape.size
        cos, sin = self.rotation.exact(torch.tensor(line))
        return made - torch.cat((cos, self.shape.sense * sin), -1)

    @cached_property
    def by_length(self) -> float:
        """How far the first tokens of the longest row are from those of a short one."""
        near, table = self.line[:NEAR], self.far[1]
        return (table[: len(near)] - torch.cat(self.table_at(near), -1)).abs().max().item()

    @cached_property
    def parting(self) -> int | None:
        """From which of the positions on it is another function, which no rounding explains."""
        line = [p for p in self.far[0] if p < self.length]
        return rows.parting(torch.tensor(line), self.errors_at(line).abs().amax(1))
