"""safetensors, written as a stream: a header with known offsets, then each array in its place."""

import json
import os
from typing import BinaryIO

import torch

from posenc.cli.io.writers.batch import FIRST_OFFSET, Batch, Manifest, raw

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
        manifest: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, manifest: Manifest):
        self.file, self.manifest = file, manifest
        header = encoded_header(manifest)
        file.write(header)
        end = len(header)
        self.places: dict[str, int] = {}
        for name in manifest.arrays():
            self.places[name], end = end, end + manifest.bytes(name)
        _reserve(file, end)
        if "offsets" in self.places:
            self._append("offsets", FIRST_OFFSET)

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for name in self.places:
            self._append(name, raw(batch.array(name, self.manifest)))

    def close(self) -> None:
        """Everything is in place already."""
        self.file.flush()

    def abandon(self) -> None:
        """Holds nothing but the file."""

    def _append(self, name: str, data: bytes) -> None:
        self.file.seek(self.places[name])
        self.file.write(data)
        self.places[name] = self.file.tell()


def encoded_header(manifest: Manifest) -> bytes:
    """All that stands before the first array."""
    header: dict[str, object] = {"__metadata__": _metadata(manifest)}
    end = 0
    for name, (dtype, shape) in manifest.arrays().items():
        begin, end = end, end + manifest.bytes(name)
        header[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
    encoded = json.dumps(header, ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded


def _metadata(manifest: Manifest) -> dict[str, str]:
    """safetensors holds text alone; every value is JSON, or a plain word."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in manifest.parameters.items()
    }
    return {**texts, "vocabulary": json.dumps(manifest.words, ensure_ascii=False)}


def _reserve(file: BinaryIO, size: int) -> None:
    """Takes the room now: a disk that is too small says so before the work, not after it."""
    file.flush()
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
