"""Large graphs of random neighbors, whose factorization would be dense."""

import numpy as np
import pytest

from posenc import Graph, LaplacianEncoding
from posenc.encodings.graphs import modes


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(modes, "FEW", 100)


def solver_of(monkeypatch, graph: Graph) -> "modes._Solver":
    made = []

    class Kept(modes._Solver):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(modes, "_Solver", Kept)
    LaplacianEncoding(4).table(graph)
    return made[0]


def test_random_neighbors_are_not_factorized(few, monkeypatch):
    """Even where so few restarts are granted to others that none of them converges."""
    monkeypatch.setattr(modes, "RESTARTS", 1)
    assert solver_of(monkeypatch, random_neighbors(1500)).solve is None


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
