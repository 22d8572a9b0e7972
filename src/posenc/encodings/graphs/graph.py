"""A graph, or a batch of them, as a list of edges."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes 0, 1, 2, … and the edges between them; several graphs are one with several parts.

    PyTorch Geometric's ``Data`` and ``Batch`` hold the same tensors: ``Graph(data.edge_index,
    data.num_nodes, data.edge_weight, data.batch)``. Edges that are listed twice add their weights,
    and an edge of weight 0 is none.

    Args:
        edge_index: ``[2, edges]``, whole numbers below ``num_nodes``.
        num_nodes: Number of nodes; if not given, as many as ``batch`` names, or as edges reach.
        edge_weight: ``[edges]``, finite and not negative; 1 each if not given.
        batch: ``[nodes]``: the graph of each node, 0, 1, 2, …; one graph if not given.

    Example:
        >>> path = Graph(torch.tensor([[0, 1], [1, 2]])).undirected()
        >>> path.edge_index
        tensor([[0, 1, 1, 2],
                [1, 0, 2, 1]])
        >>> path.num_nodes, path.num_graphs, path.is_directed
        (3, 1, False)
    """

    edge_index: Int64[Tensor, "2 edges"]
    num_nodes: int | None = None
    edge_weight: Float[Tensor, "edges"] | None = None
    batch: Int64[Tensor, "nodes"] | None = None

    def __post_init__(self) -> None:
        edges, number, weight, batch = (
            self.edge_index, self.num_nodes, self.edge_weight, self.batch
        )  # fmt: skip
        if number is None:
            reached = int(edges.max()) + 1 if edges.numel() else 0
            number = reached if batch is None else len(batch)
        check_whole(0, num_nodes=number)
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < number:
            held = f"{int(edges.min())} to {int(edges.max())}"
            raise ValueError(f"edge_index holds {held}; there are {number} nodes.")
        if batch is not None and (batch[edges[0]] != batch[edges[1]]).any():
            raise ValueError("An edge joins nodes of two graphs; give both one number in batch.")
        if weight is not None:
            total = weight.detach().cpu().double().sum()  # no degree may leave float64
            if weight.shape != edges.shape[1:] or not total.isfinite() or (weight < 0).any():
                raise ValueError("edge_weight must be a finite number from 0 on for each edge.")
        object.__setattr__(self, "edge_index", edges.long())
        object.__setattr__(self, "num_nodes", int(number))

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        if self.batch is None:
            return 1
        return int(self.batch.max()) + 1 if len(self.batch) else 0

    @property
    def is_directed(self) -> bool:
        """Whether some edge has no counterpart of the same weight."""
        return is_directed(self.adjacency())

    def undirected(self) -> "Graph":
        """The graph with every edge going both ways, sorted, with the larger weight of the two."""
        adjacency = self.adjacency()
        both = adjacency.maximum(adjacency.T).tocsr()
        both.sort_indices()
        both = both.tocoo()
        device = self.edge_index.device
        edges = torch.stack([torch.from_numpy(part).long() for part in (both.row, both.col)])
        weight = None if self.edge_weight is None else torch.from_numpy(both.data).to(device)
        if weight is None and (both.data != 1).any():  # edges that were listed twice
            weight = torch.from_numpy(both.data).to(device)
        return replace(self, edge_index=edges.to(device), edge_weight=weight)

    def adjacency(self) -> Any:
        """A[i, j], the weight of the edge from i to j, a ``scipy.sparse.csr_array`` in float64."""
        sparse = scipy_sparse()
        edges = self.edge_index.cpu().numpy()
        if self.edge_weight is None:
            values = np.ones(edges.shape[1])
        else:
            values = self.edge_weight.detach().cpu().double().numpy()
        shape = (self.num_nodes, self.num_nodes)
        made = sparse.coo_array((values, tuple(edges)), shape=shape).tocsr()
        if made.nnz < len(values):
            # Edges listed several times are summed in one order, so that both ways have one sum.
            order = np.lexsort((values, *edges[::-1]))
            made = sparse.coo_array((values[order], tuple(edges[:, order])), shape=shape).tocsr()
        made.eliminate_zeros()
        return made


def is_directed(adjacency: Any) -> bool:
    """Whether a sparse matrix is not its own transpose."""
    return (adjacency != adjacency.T).nnz > 0


def scipy_sparse() -> Any:
    """``scipy.sparse``, with its solvers and its walks over graphs; loaded when it is used."""
    try:
        import scipy.sparse
        import scipy.sparse.csgraph
        import scipy.sparse.linalg
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "Encodings of graphs need SciPy. Run: pip install 'posenc[graphs]'"
        ) from missing
    return scipy.sparse
