"""Entries of a kept table, taken by whole numbers."""

from jaxtyping import Int64
from torch import Tensor

from posenc.guards import demand, graph_looks


def rows_at(table: Tensor, places: Int64[Tensor, "*places"], dim: int = 0) -> Tensor:
    """What a table holds at these places along an axis; none is counted from its end."""
    if graph_looks(places):  # index_select refuses negative ones, but not where it is compiled
        demand((places >= 0).all(), "A position is negative, and no row of the table.")
    taken = table.index_select(dim, places.flatten())
    return taken.reshape(*table.shape[:dim], *places.shape, *table.shape[dim + 1 :])
