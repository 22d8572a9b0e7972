"""Files that grow batch by batch and never stand in memory as a whole."""

from pathlib import Path
from typing import BinaryIO

from posenc.cli.io.writers.batch import Batch, Manifest, Writer
from posenc.cli.io.writers.npz import NpzWriter
from posenc.cli.io.writers.safetensors import SafetensorsWriter
from posenc.cli.io.writers.text_writers import CsvWriter, JsonWriter

__all__ = ["Batch", "Manifest", "Writer", "writer_for"]


def writer_for(suffix: str, file: BinaryIO, manifest: Manifest, folder: Path) -> Writer:
    """The writer of the format that ``suffix`` names."""
    if suffix == ".npz":
        return NpzWriter(file, manifest, folder)
    kinds = {".safetensors": SafetensorsWriter, ".csv": CsvWriter, ".json": JsonWriter}
    return kinds[suffix](file, manifest)
