"""Random walks, against PyTorch Geometric, dense powers, and walks counted by hand."""

import pytest
import torch

from posenc import Graph, RandomWalkEncoding
from posenc.encodings.graphs import random_walk


def table(graph: Graph, length: int) -> torch.Tensor:
    return RandomWalkEncoding(length).table(graph, dtype=torch.float64)


def test_they_are_the_rows_of_the_tests_of_pytorch_geometric():
    graph = Graph(torch.tensor([[0, 1, 0, 4, 1, 4, 2, 3, 3, 5], [1, 0, 4, 0, 4, 1, 3, 2, 5, 3]]))
    assert table(graph, 3).tolist() == [
        [0.0, 0.5, 0.25],
        [0.0, 0.5, 0.25],
        [0.0, 0.5, 0.00],
        [0.0, 1.0, 0.00],
        [0.0, 0.5, 0.25],
        [0.0, 0.5, 0.00],
    ]
    loops = Graph(torch.tensor([[0, 1, 2], [0, 1, 2]]), num_nodes=4)
    assert table(loops, 3).tolist() == [[1.0] * 3] * 3 + [[0.0] * 3]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_they_are_those_of_pytorch_geometric(drawn_graph, length):
    from torch_geometric import transforms
    from torch_geometric.data import Data

    for seed in range(3):
        graph = drawn_graph(seed=seed)
        data = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
        want = transforms.AddRandomWalkPE(length)(data).random_walk_pe
        torch.testing.assert_close(RandomWalkEncoding(length).table(graph), want)


@pytest.mark.parametrize("full", [1, 10**6])
def test_large_parts_are_as_small_ones(monkeypatch, drawn_graph, full):
    """By sparse powers, and by columns where these would fill up."""
    graph = drawn_graph(nodes=40, weighted=True)
    directed = Graph(graph.edge_index[:, 1:], graph.num_nodes, graph.edge_weight[1:])
    want = [table(each, 7) for each in (graph, directed)]
    monkeypatch.setattr(random_walk, "DENSE", 10)
    monkeypatch.setattr(random_walk, "FULL", full)
    monkeypatch.setattr(random_walk, "MOST_NUMBERS", 120)  # three columns at a time
    for each, rows in zip((graph, directed), want, strict=True):
        torch.testing.assert_close(table(each, 7), rows)
