"""A graph, or a batch of them, as a list of edges."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.graphs.sparse import scipy_sparse


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes 0, 1, 2, … and the edges between them; several graphs are one with several parts.

    The names are those of PyTorch Geometric, whose ``Data`` and ``Batch`` hold the same tensors:
    ``Graph(data.edge_index, data.num_nodes, data.edge_weight, data.batch)``.

    An edge goes one way, from ``edge_index[0]`` to ``edge_index[1]``; an undirected graph lists
    both ways. Edges that are listed twice add their weights, and an edge of weight 0 is none.

    Args:
        edge_index: ``[2, edges]``, whole numbers below ``num_nodes``.
        num_nodes: Number of nodes; if not given, as many as ``batch`` names, or as edges reach.
        edge_weight: ``[edges]``, finite and not negative; 1 each if not given. Encodings are
            computed without gradients, so nothing reaches weights that are to learn.
        batch: ``[nodes]``: the graph of each node, 0, 1, 2, …; one graph if not given.

    Raises:
        TypeError: Something is no tensor, or of another dtype.
        ValueError: A shape does not fit, a node does not exist, a weight is negative or not finite,
            as the sum of all must be, or an edge joins two graphs.

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
        edges, batch = _whole("edge_index", self.edge_index), self.batch
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise ValueError(
                f"edge_index has shape {tuple(edges.shape)}; it must be [2, edges], where edges "
                f"begin and where they end. Transpose a list of pairs."
            )
        if batch is not None:
            batch = _whole("batch", batch)
        object.__setattr__(self, "edge_index", edges)
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "num_nodes", _number_of_nodes(edges, self.num_nodes, batch))
        _check_weight(self.edge_weight, edges.shape[1])
        if batch is not None and (batch[edges[0]] != batch[edges[1]]).any():
            raise ValueError("An edge joins nodes of two graphs. Give both one number in batch.")

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
        """The graph with every edge going both ways, with the larger weight of the two.

        Edges come sorted, each once.

        Example:
            >>> graph = Graph(torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([2.0, 3.0]))
            >>> graph.undirected().edge_weight
            tensor([3., 3.], dtype=torch.float64)
        """
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
        """A[i, j], the weight of the edge from i to j, as a ``scipy.sparse.csr_array`` in float64.

        Raises:
            ModuleNotFoundError: SciPy is not installed.
        """
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
    """Whether a sparse matrix is not its own transpose.

    Example:
        >>> is_directed(Graph(torch.tensor([[0], [1]])).adjacency())
        True
    """
    return (adjacency != adjacency.T).nnz > 0


def checked_graph(graph: object) -> Graph:
    """``graph``, if it is one; else what to make of edges, or of another package's graph.

    Raises:
        TypeError: It is something else.

    Example:
        >>> checked_graph(torch.tensor([[0, 1], [1, 0]]))
        Traceback (most recent call last):
        ...
        TypeError: graph is a Tensor; it must be a posenc.Graph. Pass Graph(edge_index, \
num_nodes=...), and of PyTorch Geometric Graph(data.edge_index, data.num_nodes, \
data.edge_weight, data.batch).
    """
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph is a {type(graph).__name__}; it must be a posenc.Graph. Pass Graph(edge_index, "
            f"num_nodes=...), and of PyTorch Geometric Graph(data.edge_index, data.num_nodes, "
            f"data.edge_weight, data.batch)."
        )
    return graph


def _whole(name: str, numbers: object) -> Tensor:
    if not isinstance(numbers, Tensor):
        raise TypeError(f"{name} is a {type(numbers).__name__}; it must be an int64 tensor.")
    if numbers.is_floating_point() or numbers.dtype == torch.bool or numbers.is_complex():
        raise TypeError(f"{name} is {numbers.dtype}; it must be an int64 tensor.")
    return numbers.long()


def _number_of_nodes(edges: Tensor, number: object, batch: Tensor | None) -> int:
    if batch is not None and batch.ndim != 1:
        raise ValueError(f"batch has shape {tuple(batch.shape)}; it must be [nodes].")
    if number is None:
        number = int(edges.max()) + 1 if edges.numel() else 0
        number = number if batch is None else len(batch)
    check_whole(0, num_nodes=number)
    number = int(number)  # type: ignore[call-overload]
    if batch is not None and len(batch) != number:
        raise ValueError(f"batch names the graph of {len(batch)} nodes; there are {number}.")
    for name, low, most in (("edge_index", edges, number), ("batch", batch, None)):
        if low is None or not low.numel():
            continue
        least, last = int(low.min()), int(low.max())
        if least < 0 or (most is not None and last >= most):
            raise ValueError(
                f"{name} holds {least if least < 0 else last}; there are {number} nodes, and "
                f"numbers begin at 0. Pass num_nodes where nodes have no edge."
            )
    return number


def _check_weight(weight: object, edges: int) -> None:
    if weight is None:
        return
    if not isinstance(weight, Tensor) or not weight.is_floating_point():
        kind = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
        raise TypeError(f"edge_weight is {kind}; it must be a floating tensor [edges].")
    if tuple(weight.shape) != (edges,):
        raise ValueError(
            f"edge_weight has shape {tuple(weight.shape)}; there are {edges} edges, so it must be "
            f"[{edges}]."
        )
    total = weight.detach().cpu().double().sum()  # no degree may leave float64
    if not (total.isfinite() and (weight >= 0).all()):
        raise ValueError("edge_weight must be finite and not negative: walks and degrees need it.")
