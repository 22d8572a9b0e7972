"""Encodings of the nodes of graphs: where a node stands is told by the walks and modes around it.

They act in the place of tokens: a node is a token, and its encoding is mapped to the width of the
model and added to, or put beside, what the node is.
"""

from posenc.encodings.graphs.graph import Graph
from posenc.encodings.graphs.laplacian import Eigenvectors, LaplacianEncoding
from posenc.encodings.graphs.random_walk import RandomWalkEncoding

__all__ = ["Eigenvectors", "Graph", "LaplacianEncoding", "RandomWalkEncoding"]
