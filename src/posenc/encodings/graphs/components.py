"""The connected parts of a graph, and which of their eigenvectors are the first of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posenc.encodings.graphs.canonical import TIES
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


class Candidates:
    """The first eigenvectors of each part, until all are there and can be put in order."""

    def __init__(self, k: int, tolerance: np.ndarray, batch: np.ndarray):
        self.k, self.tolerance, self.batch = k, tolerance, batch
        self.num_nodes, self.num_graphs = len(batch), len(tolerance)
        self.blocks: list[Blocks] = []
        self.vectors: list[np.ndarray] = []
        self.told: list[tuple[np.ndarray, ...]] = []

    def offer(
        self,
        blocks: Blocks,
        values: np.ndarray,
        vectors: np.ndarray,
        nodes: np.ndarray,
        near: np.ndarray,
    ) -> None:
        """Add the eigenvectors of some parts, with the nodes that the rule picked for them."""
        graphs = np.broadcast_to(self.batch[blocks.nodes[:, :1]], values.shape)
        self.blocks.append(blocks)
        self.vectors.append(vectors)
        self.told.append((graphs, values, -near, nodes))

    def ranked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The vectors ``[nodes, k]``, and of each graph the values and which of them are real."""
        vectors = np.zeros((self.num_nodes, self.k))
        values = np.zeros((self.num_graphs, self.k))
        real = np.zeros((self.num_graphs, self.k), dtype=bool)
        if not self.told:
            return vectors, values, real
        sides = zip(*self.told, strict=True)
        graph, value, near, node = (np.concatenate([x.ravel() for x in side]) for side in sides)
        column = _ranks(graph, value, near, node, self.tolerance) - 1  # the first is left out
        chosen = (column >= 0) & (column < self.k)
        values[graph[chosen], column[chosen]] = value[chosen]
        real[graph[chosen], column[chosen]] = True
        ends = np.cumsum([told[0].size for told in self.told])[:-1]
        for blocks, made, columns in zip(
            self.blocks, self.vectors, np.split(column, ends), strict=True
        ):
            columns = columns.reshape(made.shape[0], made.shape[2])
            part, at = np.nonzero((columns >= 0) & (columns < self.k))
            vectors[blocks.nodes[part], columns[part, at][:, None]] = made[part, :, at]
        return vectors, values, real


def _ranks(
    graph: np.ndarray, value: np.ndarray, near: np.ndarray, node: np.ndarray, tolerance: np.ndarray
) -> np.ndarray:
    """The place of each in its graph: by eigenvalue, then by nearness, then by node."""
    same = _grouped(value, [graph], tolerance[graph])
    tied = _grouped(near, [graph, same], TIES)
    order = np.lexsort([node, tied, same, graph])
    first = np.concatenate([[True], np.diff(graph[order]) != 0])
    starts = np.flatnonzero(first)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return ranks


def _grouped(
    numbers: np.ndarray, within: list[np.ndarray], tolerance: np.ndarray | float
) -> np.ndarray:
    """The group of each number among those that agree in ``within``; close numbers share one."""
    order = np.lexsort([numbers, *reversed(within)])
    apart = np.diff(numbers[order]) > np.broadcast_to(tolerance, numbers.shape)[order][1:]
    for each in within:
        apart |= np.diff(each[order]) != 0
    made = np.empty(len(numbers), dtype=np.int64)
    made[order] = np.concatenate([[0], np.cumsum(apart)])
    return made
