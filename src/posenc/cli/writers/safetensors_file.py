"""safetensors, written as a stream: a header with known offsets, then each array in its place."""

import json
import os
from math import prod
from typing import BinaryIO

import torch

from posenc.cli.writers.batch import Batch, Plan, raw

NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.bool: "BOOL",
}


class SafetensorsWriter:
    """Each batch goes to its offset of every array; nothing waits in memory.

    Args:
        file: A seekable file, at its beginning.
        plan: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, plan: Plan):
        self.file, self.plan = file, plan
        header: dict[str, object] = {"__metadata__": _metadata(plan)}
        end = 0
        self.places: dict[str, int] = {}
        # The wide dtypes come first, so that every array starts at a multiple of its own size.
        for name, (dtype, shape) in plan.arrays().items():
            begin, end = end, end + dtype.itemsize * prod(shape)
            header[name] = {
                "dtype": NAMES[dtype],
                "shape": list(shape),
                "data_offsets": [begin, end],
            }
            self.places[name] = begin
        encoded = json.dumps(header, ensure_ascii=False).encode()
        encoded += b" " * (-len(encoded) % 8)
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        self.places = {name: file.tell() + place for name, place in self.places.items()}
        _reserve(file, file.tell() + end)

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for name, place in self.places.items():
            self.file.seek(place)
            array = batch.array(name, self.plan.longest, self.plan.parameters["padding_id"])
            self.file.write(raw(array))
            self.places[name] = self.file.tell()

    def close(self) -> None:
        """Everything is in place already."""
        self.file.flush()


def _metadata(plan: Plan) -> dict[str, str]:
    """safetensors holds text alone; every value is JSON, or a plain word."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in plan.parameters.items()
    }
    return {**texts, "vocabulary": json.dumps(plan.words, ensure_ascii=False)}


def _reserve(file: BinaryIO, size: int) -> None:
    """Takes the room now: a disk that is too small says so before the work, not after it."""
    file.flush()
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
