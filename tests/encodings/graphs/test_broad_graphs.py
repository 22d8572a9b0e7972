"""Large graphs of random neighbors, whose factorization would be dense."""

import numpy as np
import pytest
import torch

from posenc import Graph, LaplacianEncoding
from posenc.encodings.graphs import modes


def random_neighbors(nodes: int) -> Graph:
    draw = torch.Generator().manual_seed(0)
    these = torch.arange(nodes).repeat_interleave(3)
    others = torch.randint(nodes, (3 * nodes,), generator=draw)
    return Graph(torch.stack((these, others))[:, these != others]).undirected()


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(modes, "FEW", 100)


def test_eigenvectors_are_those_of_a_dense_solver(few):
    graph = random_neighbors(1500)
    made = LaplacianEncoding(4).table(graph).double().numpy()
    adjacency = np.zeros((1500, 1500))
    weights = graph.edge_weight.numpy()  # some edges are drawn twice
    np.add.at(adjacency, tuple(graph.edge_index.numpy()), weights)
    scale = adjacency.sum(1) ** -0.5
    laplacian = np.eye(1500) - scale[:, None] * adjacency * scale
    values = np.linalg.eigvalsh(laplacian)
    of_ours = np.einsum("ij,ij->j", made, laplacian @ made) / np.square(made).sum(0)
    np.testing.assert_allclose(of_ours, values[1:5], rtol=0, atol=1e-6)
