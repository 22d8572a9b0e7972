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


def test_without_scipy_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'posenc\[graphs\]'"):
        RandomWalkEncoding(2).table(Graph(edges((0, 1))))
