"""Laplacian eigenvectors of graphs, the same at every call."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from posenc.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.graphs.canonical import basis, groups, signed
from posenc.encodings.graphs.components import Blocks, Candidates, Components
from posenc.encodings.graphs.graph import Graph, is_directed, scipy_sparse
from posenc.encodings.graphs.modes import sparse_modes
from posenc.guards import floating

Normalization = Literal["sym", "rw", "none"]

DENSE = 1024  # nodes of a part up to which all of its eigenvectors are found


class Eigenvectors(NamedTuple):
    """The first eigenvectors of each graph of a batch, as networks that read them want them.

    Attributes:
        vectors: ``[nodes, k]``, zero where a graph has fewer.
        values: ``[graphs, k]``: their eigenvalues, zero where a graph has fewer.
        real: ``[graphs, k]``: true where there is one.
    """

    vectors: Float[Tensor, "nodes k"]
    values: Float[Tensor, "graphs k"]
    real: Bool[Tensor, "graphs k"]


@dataclass(frozen=True)
class LaplacianEncoding:
    """PE(i) = [ u_1(i), …, u_k(i) ],  the eigenvectors of a Laplacian with the smallest eigenvalues

    after the first. ``normalization`` names the Laplacian as PyTorch Geometric does:

    - ``"sym"``:  I − D^(−1/2) A D^(−1/2), the paper's
    - ``"rw"``:   I − D⁻¹ A, whose eigenvectors are D^(−1/2) times those of ``"sym"``
    - ``"none"``: D − A

    each of length 1. An isolated node has eigenvalue 1 in the first two. A graph must be
    undirected; ``graph.undirected()`` makes it so. One with fewer than k + 1 nodes has zeros in the
    rest.

    The same graph has the same encoding, to about 1e-8 on another machine, and rows follow nodes
    that are numbered anew. ``posenc.encodings.graphs.canonical`` picks a basis of each eigenspace
    and its signs. Each connected part has eigenvectors of its own, zero elsewhere.

    Args:
        k: Number of eigenvectors, and width of the encoding.
        self_loops: Whether edges from a node to itself count.
        tolerance: Eigenvalues closer than this part of the largest possible one count as one. Take
            less for long chains.

    Reference:
        Belkin & Niyogi 2003, "Laplacian Eigenmaps"; Dwivedi et al. 2020, "Benchmarking Graph Neural
        Networks", section 4.1 (arXiv:2003.00982); compare Ma et al. 2023, "Laplacian Canonization"
        (arXiv:2310.18716).

    Example:
        >>> path = Graph(torch.tensor([[0, 1], [1, 2]])).undirected()
        >>> LaplacianEncoding(k=2, normalization="none").table(path).round(decimals=4) + 0.0
        tensor([[ 0.7071, -0.4082],
                [ 0.0000,  0.8165],
                [-0.7071, -0.4082]])
    """

    k: int
    normalization: Normalization = "sym"
    self_loops: bool = False
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        check_whole(k=self.k)
        check_choice(get_args(Normalization), normalization=self.normalization)
        check_positive_number(tolerance=self.tolerance)

    def table(
        self, graph: Graph, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "nodes {self.k}"]:
        """One row a node, float32 unless another dtype is asked for."""
        return self.eigenvectors(graph, dtype=dtype).vectors

    def eigenvectors(self, graph: Graph, *, dtype: torch.dtype | None = None) -> Eigenvectors:
        """The same, with the eigenvalues of each graph and how many it has."""
        adjacency = graph.adjacency()
        if is_directed(adjacency):
            raise ValueError("An edge of the graph goes one way only; pass graph.undirected().")
        if not self.self_loops:
            adjacency = _without_loops(adjacency)
        found = self._found(adjacency, graph)
        device, dtype = graph.edge_index.device, floating(dtype)
        vectors, values, real = (torch.from_numpy(each) for each in found)
        return Eigenvectors(vectors.to(device, dtype), values.to(device, dtype), real.to(device))

    def _found(self, adjacency: Any, graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        batch = np.zeros(len(degree), dtype=np.int64)
        if graph.batch is not None:
            batch = graph.batch.cpu().numpy()
        bounds, components = self._bounds(degree, batch, graph.num_graphs), Components(adjacency)
        candidates = Candidates(self.k, bounds * self.tolerance, batch)
        for blocks in components.blocks(DENSE):
            laplacian = self._laplacian(components.dense(blocks), degree[blocks.nodes])
            self._add(candidates, blocks, *np.linalg.eigh(laplacian), degree)
        for blocks in components.larger(DENSE):
            laplacian = self._sparse(components.sparse(blocks), degree[blocks.nodes[0]])
            bound = float(bounds[batch[blocks.nodes[0, 0]]])
            values, vectors = sparse_modes(
                laplacian, self.k + 1, bound * self.tolerance, largest=bound
            )
            self._add(candidates, blocks, values[None], vectors[None], degree)
        return candidates.ranked()

    def _bounds(self, degree: np.ndarray, batch: np.ndarray, graphs: int) -> np.ndarray:
        """The largest possible eigenvalue of each graph, whichever others stand beside it."""
        if self.normalization != "none":
            return np.full(graphs, 2.0)
        most = np.zeros(graphs)
        np.maximum.at(most, batch, degree)
        return np.where(most > 0, 2 * most, 1.0)

    def _laplacian(self, blocks: np.ndarray, degree: np.ndarray) -> np.ndarray:
        size = np.arange(blocks.shape[-1])
        if self.normalization == "none":
            made = -blocks
            made[:, size, size] += degree
            return made
        root = _inverse_root(degree)
        made = -root[:, :, None] * blocks * root[:, None, :]
        made[:, size, size] += 1
        return made

    def _sparse(self, adjacency: Any, degree: np.ndarray) -> Any:
        diagonal = scipy_sparse().diags_array
        if self.normalization == "none":
            return (diagonal(degree) - adjacency).tocsr()
        root = diagonal(_inverse_root(degree))
        return (diagonal(np.ones(len(degree))) - root @ adjacency @ root).tocsr()

    def _add(
        self,
        candidates: Candidates,
        blocks: Blocks,
        values: np.ndarray,
        vectors: np.ndarray,
        degree: np.ndarray,
    ) -> None:
        """Settle the first eigenvectors of these parts, and offer them to their graphs."""
        count = min(self.k + 1, blocks.size)
        made, nodes, near = signed(vectors[..., :count])
        tolerance = candidates.tolerance[candidates.batch[blocks.nodes[:, 0]]]
        gaps = np.diff(values[:, : count + 1], axis=1) <= tolerance[:, None]
        for at in np.flatnonzero(gaps.any(axis=1)):
            settled = _settled(values[at], vectors[at], count, float(tolerance[at]))
            made[at], nodes[at], near[at] = settled
        if self.normalization == "rw":
            made = made * _inverse_root(degree[blocks.nodes], 1.0)[..., None]
            made = made / np.linalg.norm(made, axis=1, keepdims=True)
        nodes = np.take_along_axis(blocks.nodes, nodes, axis=1)
        candidates.offer(blocks, values[:, :count], made, nodes, near)


def _settled(
    values: np.ndarray, vectors: np.ndarray, count: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The basis of every eigenspace that the first ``count`` vectors of one part reach."""
    group = groups(values, tolerance)
    made = [basis(vectors[:, group == number], count) for number in range(group[count - 1] + 1)]
    parts = (np.concatenate([each[part] for each in made], axis=-1) for part in range(3))
    vectors, nodes, near = parts
    return vectors[:, :count], nodes[:count], near[:count]


def _without_loops(adjacency: Any) -> Any:
    made = adjacency.tocsr(copy=True)
    made.setdiag(0)
    made.eliminate_zeros()
    return made


def _inverse_root(degree: np.ndarray, of_nothing: float = 0.0) -> np.ndarray:
    """1/√degree, and ``of_nothing`` where the degree is 0."""
    with np.errstate(divide="ignore"):
        return np.where(degree > 0, 1 / np.sqrt(degree), of_nothing)
