"""Changes of the positions themselves: drawn for each row, or made pair by pair."""

from posenc.encodings.remapping.cape import CAPE
from posenc.encodings.remapping.cyclic_offset import CyclicOffset
from posenc.encodings.remapping.dual_chunk import DualChunk
from posenc.encodings.remapping.pose import PoSE
from posenc.encodings.remapping.randomized import Randomized
from posenc.encodings.remapping.re_rope import ReRoPE
from posenc.encodings.remapping.self_extend import SelfExtend
from posenc.encodings.remapping.shape import SHAPE

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
