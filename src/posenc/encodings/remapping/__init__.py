"""Changes of the positions themselves: drawn for each row, or made pair by pair."""

from posenc.encodings.remapping.drawn import CAPE, SHAPE, PoSE, Randomized
from posenc.encodings.remapping.pairs import CyclicOffset, DualChunk, ReRoPE, SelfExtend

__all__ = [
    "CAPE",
    "SHAPE",
    "CyclicOffset",
    "DualChunk",
    "PoSE",
    "Randomized",
    "ReRoPE",
    "SelfExtend",
]
