"""The connected parts of a graph, those of one size together, as dense blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.encodings.graphs.graph import scipy_sparse

MOST_NUMBERS = 2**22  # of one stack of blocks


@dataclass(frozen=True)
class Blocks:
    """Connected parts of one size: their numbers ``[count]``, and nodes ``[count, size]``."""

    parts: np.ndarray
    nodes: np.ndarray

    @property
    def size(self) -> int:
        """Number of nodes in each."""
        return self.nodes.shape[1]


class Components:
    """The connected parts of an adjacency: that of each node, and its place in its part."""

    def __init__(self, adjacency: Any):
        self.adjacency = adjacency
        graphs = scipy_sparse().csgraph
        self.count, self.label = graphs.connected_components(adjacency, directed=False)
        self.sizes = np.bincount(self.label, minlength=self.count)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.order = np.argsort(self.label, kind="stable")
        self.place = np.empty(len(self.label), dtype=np.int64)
        self.place[self.order] = np.arange(len(self.label)) - self.starts[self.label[self.order]]

    def blocks(self, most: int) -> Iterator[Blocks]:
        """The parts of up to ``most`` nodes, in stacks of one size."""
        for size in np.unique(self.sizes[self.sizes <= most]):
            parts = np.flatnonzero(self.sizes == size)
            count = max(1, MOST_NUMBERS // int(size) ** 2)
            for first in range(0, len(parts), count):
                chosen = parts[first : first + count]
                yield Blocks(chosen, self.order[self.starts[chosen][:, None] + np.arange(size)])

    def larger(self, least: int) -> Iterator[Blocks]:
        """The parts of more than ``least`` nodes, one by one."""
        for part in np.flatnonzero(self.sizes > least):
            nodes = self.order[self.starts[part] : self.starts[part + 1]]
            yield Blocks(np.array([part]), nodes[None])

    def dense(self, blocks: Blocks) -> np.ndarray:
        """A of each of these parts, ``[count, size, size]``."""
        made = np.zeros((len(blocks.parts), blocks.size, blocks.size))
        rows = self.adjacency[blocks.nodes.ravel()].tocoo()
        made[rows.row // blocks.size, rows.row % blocks.size, self.place[rows.col]] = rows.data
        return made

    def sparse(self, blocks: Blocks) -> Any:
        """A of one part."""
        (nodes,) = blocks.nodes
        return self.adjacency[nodes][:, nodes]
