"""The two pairings of rotated channels, in whole models and their checkpoints."""

from posenc.interop.weights.checkpoint import (
    RowOrder,
    RowOrders,
    convert_weights,
    measured_types,
    row_orders,
)
from posenc.interop.weights.models import ConvertedPairing, convert_pairing, rotate_as_converted

__all__ = [
    "ConvertedPairing", "RowOrder", "RowOrders", "convert_pairing", "convert_weights",
    "measured_types", "rotate_as_converted", "row_orders",
]  # fmt: skip
