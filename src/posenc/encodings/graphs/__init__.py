"""Encodings of the nodes of graphs, by the walks and modes around them; a node is a token."""

from posenc.encodings.graphs.graph import Graph
from posenc.encodings.graphs.laplacian import Eigenvectors, LaplacianEncoding
from posenc.encodings.graphs.random_walk import RandomWalkEncoding

__all__ = ["Eigenvectors", "Graph", "LaplacianEncoding", "RandomWalkEncoding"]
