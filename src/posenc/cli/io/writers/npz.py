"""npz, written as a stream: a zip archive whose members are npy files, one after the other."""

import contextlib
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import torch

from posenc.cli.errors import UserError
from posenc.cli.io.writers.batch import FIRST_OFFSET, Batch, Manifest, raw

NAMES = {
    torch.float64: "<f8",
    torch.float32: "<f4",
    torch.float16: "<f2",
    torch.int64: "<i8",
    torch.bool: "|b1",
}


class NpzWriter:
    """``values`` stream into the archive; the small arrays wait in files on disk.

    A zip archive grows one member at a time, so only the largest can go there directly.

    Args:
        file: A seekable file, at its beginning.
        manifest: Shapes and metadata of the whole.
        folder: Where the waiting files lie; the one of the output, as it has the room.

    Raises:
        UserError: The dtype is bfloat16, which numpy does not have.
    """

    def __init__(self, file: BinaryIO, manifest: Manifest, folder: Path):
        if manifest.dtype not in NAMES:
            raise UserError(
                "npz cannot hold bfloat16; give --output a .safetensors name, or --dtype float32"
            )
        self.manifest, self.file = manifest, _Abandonable(file)
        self.archive = zipfile.ZipFile(self.file, "w", zipfile.ZIP_STORED, allowZip64=True)  # type: ignore[arg-type]
        self.waiting: dict[str, IO[bytes]] = {}
        try:
            self.values = self._member("values")
            for name in manifest.arrays().keys() - {"values"}:
                waiting = tempfile.TemporaryFile(dir=folder, prefix=".posenc-")  # noqa: SIM115
                self.waiting[name] = waiting
            if "offsets" in self.waiting:
                self.waiting["offsets"].write(FIRST_OFFSET)
        except BaseException:
            self.abandon()
            raise

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for name, stream in {"values": self.values, **self.waiting}.items():
            stream.write(raw(batch.array(name, self.manifest)))

    def close(self) -> None:
        """Brings the waiting arrays and the metadata into the archive."""
        self.values.close()
        for name, waiting in self.waiting.items():
            waiting.seek(0)
            with self._member(name) as member:
                shutil.copyfileobj(waiting, member, 1 << 20)
            waiting.close()
        with self.archive.open("metadata.npy", "w") as member:
            about = np.array(npz_metadata(self.manifest))
            np.lib.format.write_array(member, about, allow_pickle=False)
        self.archive.close()

    def abandon(self) -> None:
        """Closes everything without writing: a zip archive would else add its end to a full disk.

        It does so whenever it is collected, and what fails there nobody can catch.
        """
        self.file.abandoned = True
        begun = [self.values] if hasattr(self, "values") else []
        for stream in (*self.waiting.values(), *begun, self.archive):
            with contextlib.suppress(OSError, ValueError):
                stream.close()

    def _member(self, name: str) -> IO[bytes]:
        """An open member that has its npy header already."""
        dtype, shape = self.manifest.arrays()[name]
        member = self.archive.open(f"{name}.npy", "w", force_zip64=True)
        header = {"descr": NAMES[dtype], "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        return member


def npz_metadata(manifest: Manifest) -> str:
    """How the numbers came about, and every token, as JSON."""
    return json.dumps({**manifest.parameters, "vocabulary": manifest.words}, ensure_ascii=False)


class _Abandonable:
    """A file that takes no more once it is abandoned."""

    def __init__(self, file: BinaryIO):
        self.file, self.abandoned = file, False

    def write(self, data: Any) -> int:
        return len(data) if self.abandoned else self.file.write(data)

    def flush(self) -> None:
        if not self.abandoned:
            self.file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
