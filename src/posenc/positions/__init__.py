"""Positions: one int64 tensor, ``[*batch, seq]``, however the tokens are laid out.

Every encoding takes explicit positions, so a token gets the same encoding in a plain batch, behind
left padding, in a packed row, from a cache, or on one rank of many. Each function here lays tokens
out in one manner.
"""

from posenc.positions.batches import PackedBatch, collate
from posenc.positions.checks import Integers, Positions, checked, floats, in_float64
from posenc.positions.coordinates import Coordinates, common_scale
from posenc.positions.distances import checked_distances, float_distances, pair_distances
from posenc.positions.grids import centers, grid, masked_grid, on_levels
from posenc.positions.images import packed_grids
from posenc.positions.modalities import mixed_modalities
from posenc.positions.normalized import normalized_grid
from posenc.positions.packing import packed, runs
from posenc.positions.padding import in_documents, left_padded, over_padding
from posenc.positions.placeless import NOWHERE, kept, placeless, prefixed
from posenc.positions.ranges import consecutive, decoding
from posenc.positions.shards import shard, unshard
from posenc.positions.video import diagonal_video, symmetric_video

__all__ = [
    "NOWHERE",
    "Coordinates",
    "Integers",
    "PackedBatch",
    "Positions",
    "centers",
    "checked",
    "checked_distances",
    "collate",
    "common_scale",
    "consecutive",
    "decoding",
    "diagonal_video",
    "float_distances",
    "floats",
    "grid",
    "in_documents",
    "in_float64",
    "kept",
    "left_padded",
    "masked_grid",
    "mixed_modalities",
    "normalized_grid",
    "on_levels",
    "over_padding",
    "packed",
    "packed_grids",
    "pair_distances",
    "placeless",
    "prefixed",
    "runs",
    "shard",
    "symmetric_video",
    "unshard",
]
