"""Keys and values on their way from rank to rank, while those that came are worked with."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

CONTENT, GRADIENTS = 0, 1  # tags, so that what two ranks send each other cannot be mistaken


@dataclass(frozen=True)
class Schedule:
    """Who sends to whom, step by step: at step s, each rank to the one s after it."""

    group: dist.ProcessGroup
    takes: tuple[bool, ...]  # for each rank, whether this one needs its keys
    gives: tuple[bool, ...]  # for each rank, whether it needs those of this one

    @property
    def steps(self) -> range:
        """The steps after a rank's own keys."""
        return range(1, self.group.size())

    def source(self, step: int) -> int:
        """Whose keys come at a step."""
        return (self.group.rank() - step) % self.group.size()

    def target(self, step: int) -> int:
        """Who gets this rank's keys at a step."""
        return (self.group.rank() + step) % self.group.size()

    def content(self, own: Tensor, step: int) -> "Transfer":
        """Begin to send ``own`` and to receive another rank's."""
        sends = [(own, self.target(step))] if self.gives[self.target(step)] else []
        takes = self.takes[self.source(step)]
        buffer = torch.empty_like(own) if takes else None
        return self._begun(sends, buffer, self.source(step), CONTENT)

    def gradients(self, made: Tensor | None, like: Tensor, step: int) -> "Transfer":
        """Begin to send home what was ``made`` for others' keys, and to receive what is ours."""
        sends = [] if made is None else [(made, self.source(step))]
        buffer = torch.empty_like(like) if self.gives[self.target(step)] else None
        return self._begun(sends, buffer, self.target(step), GRADIENTS)

    def _begun(
        self, sends: Sequence[tuple[Tensor, int]], buffer: Tensor | None, source: int, tag: int
    ) -> "Transfer":
        def peer(rank: int) -> int:
            return dist.get_global_rank(self.group, rank)

        operations = [dist.P2POp(dist.isend, x, peer(rank), self.group, tag) for x, rank in sends]
        if buffer is not None:
            operations.append(dist.P2POp(dist.irecv, buffer, peer(source), self.group, tag))
        works = dist.batch_isend_irecv(operations) if operations else []
        return Transfer(tuple(works), buffer, tuple(x for x, _ in sends))


@dataclass(frozen=True)
class Transfer:
    """Something on its way: into ``buffer``, if anything comes."""

    works: tuple[dist.Work, ...]
    buffer: Tensor | None
    sent: tuple[Tensor, ...]  # held until it has left

    def arrived(self) -> Tensor | None:
        """Wait for it."""
        for work in self.works:
            work.wait()
        return self.buffer
