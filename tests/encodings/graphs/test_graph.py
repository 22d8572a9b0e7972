"""Graphs as lists of edges."""

import sys

import pytest
import torch

from posenc import Graph, RandomWalkEncoding


def edges(*pairs: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


def test_edges_listed_twice_add_and_those_of_no_weight_are_none():
    graph = Graph(edges((0, 1), (0, 1), (1, 2)), edge_weight=torch.tensor([1.0, 2.0, 0.0]))
    made = graph.adjacency()
    assert made.nnz == 1
    assert made[0, 1] == 3


REFUSED = [
    (lambda: Graph(torch.tensor([[0, 1], [1, 2], [2, 0]])), r"must be int64 \[2, edges\]"),
    (lambda: Graph(edges((0, 5)), 3), "edge_index holds 0 to 5; there are 3 nodes"),
    (lambda: Graph(edges((0, 1)), edge_weight=-torch.ones(1)), "edge_weight must be"),
    (lambda: Graph(edges((0, 1)), batch=torch.tensor([0, 1])), "joins nodes of two"),
]


@pytest.mark.parametrize(("build", "words"), REFUSED)
def test_what_is_no_graph_is_told(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_without_scipy_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'posenc\[graphs\]'"):
        RandomWalkEncoding(2).table(Graph(edges((0, 1))))
