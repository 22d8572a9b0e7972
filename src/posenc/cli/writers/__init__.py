"""Files that grow batch by batch and never stand in memory as a whole."""

from pathlib import Path
from typing import BinaryIO

from posenc.cli.writers.batch import Batch, Plan, Writer
from posenc.cli.writers.lines import CsvWriter, JsonWriter, digits
from posenc.cli.writers.npz import NpzWriter
from posenc.cli.writers.safetensors_file import SafetensorsWriter

__all__ = ["Batch", "Plan", "Writer", "digits", "writer_for"]


def writer_for(suffix: str, file: BinaryIO, plan: Plan, folder: Path) -> Writer:
    """The writer of the format that ``suffix`` names."""
    if suffix == ".npz":
        return NpzWriter(file, plan, folder)
    kinds = {".safetensors": SafetensorsWriter, ".csv": CsvWriter, ".json": JsonWriter}
    return kinds[suffix](file, plan)
