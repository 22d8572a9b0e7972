"""RWPE: how likely a random walk is back at its node after each number of steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.graphs.components import MOST_NUMBERS, Components
from posenc.encodings.graphs.graph import Graph
from posenc.guards import floating

DENSE = 1024  # nodes of a part up to which its powers are dense
FULL = 256  # numbers a row from which on a sparse power is given up


@dataclass(frozen=True)
class RandomWalkEncoding:
    """PE(i) = [ (P)_ii, (P²)_ii, …, (P^walk_length)_ii ],  P = D⁻¹ A

    with A the weights of the edges and D the sums of those that leave a node. A D⁻¹, which the
    paper writes, has the same diagonals. A node that no edge leaves ends the walk. A self loop is
    an edge.

    Args:
        walk_length: Number of steps, and width of the encoding: 16 to 24 in the paper.

    Reference:
        Dwivedi et al. 2022, "Graph Neural Networks with Learnable Structural and Positional
        Representations", section 3.2 (arXiv:2110.07875); ``AddRandomWalkPE`` of PyTorch Geometric,
        which takes every edge of a node to be as likely, whatever its weight.

    Example:
        >>> triangle = Graph(torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]))
        >>> RandomWalkEncoding(walk_length=3).table(triangle)[0]
        tensor([0.0000, 0.5000, 0.2500])
    """

    walk_length: int

    def __post_init__(self) -> None:
        check_whole(walk_length=self.walk_length)

    def table(
        self, graph: Graph, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "nodes walk_length"]:
        """One row a node, float32 unless another dtype is asked for."""
        adjacency = graph.adjacency()
        components = Components(_steps(adjacency))
        made = np.zeros((adjacency.shape[0], self.walk_length))
        for blocks in components.blocks(DENSE):
            walks = components.dense(blocks)
            made[blocks.nodes] = np.stack(_returns(walks, self.walk_length), axis=-1)
        for blocks in components.larger(DENSE):
            walks = components.sparse(blocks)
            made[blocks.nodes[0]] = _large_returns(walks, self.walk_length)
        rows = torch.from_numpy(made).to(floating(dtype))
        return rows.to(graph.edge_index.device)


def _steps(adjacency: Any) -> Any:
    """P = D⁻¹ A."""
    leaving = np.asarray(adjacency.sum(axis=1)).ravel()
    steps = adjacency.copy()
    steps.data = steps.data / np.repeat(leaving, np.diff(steps.indptr))
    return steps


def _large_returns(steps: Any, length: int) -> np.ndarray:
    """The diagonals of a sparse matrix, by its powers, or by columns where these would fill up."""
    try:
        return np.stack(_returns(steps, length), axis=-1)
    except _TooFull:
        size = steps.shape[0]
        count = max(1, MOST_NUMBERS // size)
        chunks = (np.arange(first, min(first + count, size)) for first in range(0, size, count))
        return np.concatenate([_column_returns(steps, nodes, length) for nodes in chunks])


class _TooFull(Exception):
    """A power has so many numbers that columns are cheaper."""


def _column_returns(steps: Any, nodes: np.ndarray, length: int) -> np.ndarray:
    """Σ_j (P^a)_ij (P^b)_ji of some nodes i, from walks that begin and that end there."""
    ending = np.zeros((steps.shape[0], len(nodes)))
    ending[nodes, np.arange(len(nodes))] = 1
    beginning, backward, made = ending, steps.T.tocsr(), []
    for number in range(1, length + 1):
        if number % 2:
            ending = steps @ ending
        else:
            beginning = backward @ beginning
        made.append(np.einsum("ji,ji->i", beginning, ending))
    return np.stack(made, axis=-1)


def _returns(steps: Any, length: int) -> list[np.ndarray]:
    """The diagonals of the powers 1 … ``length`` of one matrix, or of a stack of them."""
    dense = isinstance(steps, np.ndarray)
    made = [np.diagonal(steps, axis1=-2, axis2=-1) if dense else steps.diagonal()]
    half, power = steps, steps
    for number in range(2, length + 1):
        if number % 2:
            half, power = power, power @ steps  # powers (number − 1)/2 and (number + 1)/2
        else:
            half = power
        if not dense and power.nnz > FULL * power.shape[0]:
            raise _TooFull
        made.append(_diagonal(power, half))
    return made


def _diagonal(left: Any, right: Any) -> np.ndarray:
    """The diagonal of a product, of which nothing else is formed."""
    if isinstance(left, np.ndarray):
        return np.einsum("...ij,...ji->...i", left, right)
    return np.asarray(left.multiply(right.T.tocsr()).sum(axis=1)).ravel()
