"""Sequences cut among devices, on torch's process groups."""

from posenc.distributed.key_shards import KeyShards
from posenc.distributed.own_heads import own_heads
from posenc.distributed.shards import Shards

__all__ = ["KeyShards", "Shards", "own_heads"]
