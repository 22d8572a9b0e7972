"""npz, written as a stream: a zip archive whose members are npy files, one after the other."""

import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
import torch

from posenc.cli.errors import UserError
from posenc.cli.writers.batch import Batch, Plan, raw

NAMES = {
    torch.float64: "<f8",
    torch.float32: "<f4",
    torch.float16: "<f2",
    torch.int64: "<i8",
    torch.bool: "|b1",
}


class NpzWriter:
    """``encoded`` streams into the archive; the small arrays wait in files on disk.

    A zip archive grows one member at a time, so only the largest can go there directly.

    Args:
        file: A seekable file, at its beginning.
        plan: Shapes and metadata of the whole.
        folder: Where the waiting files lie; the one of the output, as it has the room.

    Raises:
        UserError: The dtype is bfloat16, which numpy does not have.
    """

    def __init__(self, file: BinaryIO, plan: Plan, folder: Path):
        if plan.dtype not in NAMES:
            raise UserError(
                "npz cannot hold bfloat16; give --output a .safetensors name, or --dtype float32"
            )
        self.plan = plan
        self.archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.waiting: dict[str, IO[bytes]] = {
            name: tempfile.TemporaryFile(dir=folder, prefix=".posenc-")  # noqa: SIM115
            for name in plan.arrays()
            if name != "encoded"
        }
        self.encoded = self._member("encoded")

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for name, stream in {"encoded": self.encoded, **self.waiting}.items():
            array = batch.array(name, self.plan.longest, self.plan.parameters["padding_id"])
            stream.write(raw(array))

    def close(self) -> None:
        """Brings the waiting arrays and the metadata into the archive."""
        self.encoded.close()
        for name, waiting in self.waiting.items():
            waiting.seek(0)
            with self._member(name) as member:
                shutil.copyfileobj(waiting, member, 1 << 20)
            waiting.close()
        about = {**self.plan.parameters, "vocabulary": self.plan.words}
        with self.archive.open("metadata.npy", "w") as member:
            np.lib.format.write_array(
                member, np.array(json.dumps(about, ensure_ascii=False)), allow_pickle=False
            )
        self.archive.close()

    def _member(self, name: str) -> IO[bytes]:
        """An open member that has its npy header already."""
        dtype, shape = self.plan.arrays()[name]
        member = self.archive.open(f"{name}.npy", "w", force_zip64=True)
        header = {"descr": NAMES[dtype], "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        return member
