"""Encodings of graphs: batches of molecules, and one large graph, as they grow.

Nothing cheaper gives the same, so each is held against eigenvectors of the smallest graph of its
kind. SciPy solves on the CPU.
"""

from collections.abc import Iterator

import torch

from benchmarks.harness import Case
from posenc import Graph, LaplacianEncoding, RandomWalkEncoding

STEPS, VECTORS, NEIGHBORS = 16, 8, 6
BATCHES, QUICK_BATCHES = [25_000, 50_000, 100_000], [500, 1000]
GRIDS, QUICK_GRIDS = [100, 200, 316], [10, 20]
"""Nodes a side."""
RANDOM, QUICK_RANDOM = [12_500, 25_000, 50_000, 100_000], [500, 1500]
MOST_WALKED = 12_500
"""Walks over a dense middle take time and memory by the square of the nodes."""


def cases(quick: bool) -> Iterator[Case]:
    """Each kind of graph in every size."""
    kinds = {
        "molecules": (molecules, QUICK_BATCHES if quick else BATCHES),
        "a square grid": (square, QUICK_GRIDS if quick else GRIDS),
        "random neighbors": (neighbors, QUICK_RANDOM if quick else RANDOM),
    }
    for kind, (build, sizes) in kinds.items():
        smallest = build(sizes[0])
        for size in sizes:
            yield _case(kind, build(size), smallest)


def _case(kind: str, graph: Graph, smallest: Graph) -> Case:
    walks, eigenvectors = RandomWalkEncoding(STEPS), LaplacianEncoding(VECTORS)
    contenders = {"posenc, eigenvectors": lambda: eigenvectors.table(graph)}
    if kind != "random neighbors" or graph.num_nodes <= MOST_WALKED:
        contenders["posenc, random walks"] = lambda: walks.table(graph)
    return Case(
        f"graphs: {kind}, {graph.num_nodes} nodes",
        contenders,
        lambda: eigenvectors.table(smallest),
        against="smallest",
        most_rounds=3,
    )


def molecules(nodes: int) -> Graph:
    """Rings and chains of 10 to 50 nodes, as drawn from one seed."""
    draw = torch.Generator().manual_seed(0)
    edges, batch, begin = [], [], 0
    while begin < nodes:
        count = min(int(torch.randint(10, 51, (), generator=draw)), nodes - begin)
        chain = torch.stack((torch.arange(count - 1), torch.arange(1, count)))
        chords = torch.randint(count, (2, max(count // 6, 1)), generator=draw)
        edges.append(begin + torch.cat((chain, chords), dim=1))
        batch.append(torch.full((count,), len(batch)))
        begin += count
    return _simple(torch.cat(edges, dim=1), torch.cat(batch))


def square(side: int) -> Graph:
    """A grid of side × side nodes."""
    index = torch.arange(side * side).view(side, side)
    along = torch.stack((index[:, :-1].flatten(), index[:, 1:].flatten()))
    return Graph(torch.cat((along, torch.stack((index[:-1].flatten(), index[1:].flatten()))), 1)
                 ).undirected()  # fmt: skip


def neighbors(nodes: int) -> Graph:
    """Each node and some others, drawn at random."""
    draw = torch.Generator().manual_seed(0)
    others = torch.randint(nodes, (nodes, NEIGHBORS // 2), generator=draw)
    these = torch.arange(nodes).unsqueeze(-1).expand_as(others)
    edges = torch.stack((these.flatten(), others.flatten()))
    return _simple(edges, torch.zeros(nodes, dtype=torch.int64))


def _simple(edges: torch.Tensor, batch: torch.Tensor) -> Graph:
    """Without loops, and each edge once in each direction."""
    edges = edges[:, edges[0] != edges[1]].sort(dim=0).values.unique(dim=1)
    return Graph(edges, batch=batch).undirected()
