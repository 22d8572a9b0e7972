"""Laplacian eigenvectors: against PyTorch Geometric, known spectra, and the promise of one sign."""

import math

import numpy as np
import pytest
import torch

from posenc import Graph, LaplacianEncoding
from posenc.encodings.graphs import laplacian as module

NORMALIZATIONS = ["sym", "rw", "none"]


def eigenvectors(graph: Graph, k: int, **options):
    return LaplacianEncoding(k, **options).eigenvectors(graph, dtype=torch.float64)


def dense_laplacian(graph: Graph, normalization: str) -> np.ndarray:
    """The formula, entry by entry."""
    weight = graph.adjacency().toarray()
    degree, size = weight.sum(axis=1), len(weight)
    made = np.zeros((size, size))
    for i in range(size):
        for j in range(size):
            if normalization == "none":
                made[i, j] = (degree[i] if i == j else 0) - weight[i, j]
                continue
            by = degree[i] if normalization == "rw" else math.sqrt(degree[i] * degree[j])
            made[i, j] = (i == j) - (weight[i, j] / by if by else 0)
    return made


# What they are.


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("weighted", [True, False])
def test_they_are_the_first_eigenvectors(drawn_graph, normalization, weighted):
    graph = drawn_graph(weighted=weighted)
    found = eigenvectors(graph, 6, normalization=normalization)
    matrix = dense_laplacian(graph, normalization)
    want = np.sort(np.linalg.eigvals(matrix).real)[1:7]
    np.testing.assert_allclose(found.values[0], want, atol=1e-12)
    vectors = found.vectors.numpy()
    np.testing.assert_allclose(matrix @ vectors, vectors * found.values.numpy(), atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)


@pytest.mark.parametrize("nodes", [24, 150])
def test_they_are_those_of_pytorch_geometric_but_for_signs(drawn_graph, nodes):
    from torch_geometric import transforms
    from torch_geometric.data import Data

    for seed in range(2):
        graph = drawn_graph(nodes, 3 * nodes, seed=seed)
        data = Data(edge_index=graph.edge_index, num_nodes=nodes)
        transform = transforms.AddLaplacianEigenvectorPE(4, is_undirected=True)
        want = transform(data).laplacian_eigenvector_pe.double()
        got = eigenvectors(graph, 4).vectors
        torch.testing.assert_close(got.abs(), want.abs(), atol=1e-4, rtol=0)  # theirs is float32


# That they are the same.


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_rows_move_with_the_nodes(drawn_graph, normalization):
    for seed in range(8):
        graph = drawn_graph(18, 60, seed=seed, weighted=seed % 2 == 0)
        order = torch.randperm(18, generator=torch.Generator().manual_seed(seed))
        moved = Graph(order[graph.edge_index], 18, graph.edge_weight)
        one, other = (
            eigenvectors(each, 6, normalization=normalization).vectors for each in (graph, moved)
        )
        torch.testing.assert_close(other[order], one, atol=1e-8, rtol=0)


def test_another_solver_gives_the_same_vectors(monkeypatch, grid, drawn_graph):
    """Dense, Lanczos and factorized: signs agree, and so do bases of eigenspaces."""
    for graph, k in ((drawn_graph(60, 200), 5), (grid(8, 8), 7), (grid(8, 8, closed=True), 6)):
        want = eigenvectors(graph, k)
        monkeypatch.setattr(module, "DENSE", 10)
        for restarts in (500, 1):
            monkeypatch.setattr("posenc.encodings.graphs.modes.RESTARTS", restarts)
            got = eigenvectors(graph, k)
            torch.testing.assert_close(got.values, want.values, atol=1e-10, rtol=0)
            torch.testing.assert_close(got.vectors, want.vectors, atol=1e-8, rtol=0)
        monkeypatch.undo()


def test_a_turned_basis_gives_the_same_vectors(monkeypatch, grid):
    """Whatever basis of an eigenspace a solver finds."""
    graph = grid(6, 6, closed=True)
    want = eigenvectors(graph, 7)
    assert (want.values.diff() < 1e-10).any()
    plain, generator = np.linalg.eigh, np.random.default_rng(0)

    def turned(matrix):
        values, vectors = plain(matrix)
        for start in range(0, len(values[0])):
            same = np.flatnonzero(np.abs(values[0] - values[0, start]) < 1e-9)
            if same[0] == start:
                turn, _ = np.linalg.qr(generator.standard_normal((len(same), len(same))))
                vectors[0][:, same] = vectors[0][:, same] @ turn
        return values, vectors

    monkeypatch.setattr(np.linalg, "eigh", turned)
    got = eigenvectors(graph, 7)
    torch.testing.assert_close(got.vectors, want.vectors, atol=1e-8, rtol=0)


def test_between_equal_eigenvalues_of_parts_the_rule_of_nodes_decides():
    """A ring of four and a pair share the eigenvalue 2, all their nodes as near; a pair is less."""
    ring, pair = [(0, 1), (1, 2), (2, 3), (3, 0)], [(4, 5)]
    both = Graph(torch.tensor(ring + pair).T.contiguous()).undirected()
    found = eigenvectors(both, 4, normalization="none")
    assert torch.allclose(found.values[0, 1:], torch.full((3,), 2.0, dtype=torch.float64))
    within_ring = found.vectors[:4].abs().amax(0) > 1e-6
    assert within_ring.tolist() == [True, True, True, False]
