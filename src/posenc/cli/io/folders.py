"""A folder appears whole under its name, or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from posenc.cli.errors import UserError


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; it takes the name ``path`` when the block ends, and never before.

    Raises:
        UserError: Something that is no empty folder has that name, or it stands in no folder.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"{path} is there already; give the name of a new or an empty folder")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UserError(f"there is no folder {parent}; make it first")
    growing = parent / f".posenc-{secrets.token_hex(8)}.part"
    growing.mkdir()
    try:
        yield growing
        os.replace(growing, path)
    finally:
        shutil.rmtree(growing, ignore_errors=True)
