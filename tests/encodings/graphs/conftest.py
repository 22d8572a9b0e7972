"""Graphs to encode."""

import pytest
import torch

from posenc import Graph


@pytest.fixture
def two_triangles() -> Graph:
    """The graph of PyTorch Geometric's own tests of eigenvectors."""
    return Graph(torch.tensor([[0, 1, 0, 4, 1, 4, 2, 3, 3, 5, 2, 5],
                               [1, 0, 4, 0, 4, 1, 3, 2, 5, 3, 5, 2]]))  # fmt: skip


@pytest.fixture
def drawn_graph():
    """A connected graph, drawn anew from a seed: a chain with more edges across it."""

    def make(nodes: int = 24, more: int = 60, seed: int = 0, *, weighted: bool = False) -> Graph:
        generator = torch.Generator().manual_seed(seed)
        chain = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        edges = torch.cat([chain, torch.randint(nodes, (2, more), generator=generator)], dim=1)
        edges = edges[:, edges[0] != edges[1]].unique(dim=1)
        weight = torch.rand(edges.shape[1], generator=generator) + 0.1 if weighted else None
        return Graph(edges, nodes, weight).undirected()

    return make


@pytest.fixture
def grid():
    """Rows × columns of nodes, each beside its neighbors; at will closed to a torus."""

    def make(rows: int, columns: int, *, closed: bool = False) -> Graph:
        index = torch.arange(rows * columns).view(rows, columns)
        pairs = [(index[:-1], index[1:]), (index[:, :-1], index[:, 1:])]
        if closed:
            pairs += [(index[-1], index[0]), (index[:, -1], index[:, 0])]
        edges = torch.cat([torch.stack([a.ravel(), b.ravel()]) for a, b in pairs], dim=1)
        return Graph(edges, rows * columns).undirected()

    return make
