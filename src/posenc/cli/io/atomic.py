"""A file appears whole under its name, or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from posenc.cli.errors import UserError


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes the name ``path`` when the block ends, and never before.

    It grows without a name where the system allows that, so that not even a killed process leaves
    a part of it, and is on disk (fsync) before it replaces what was there.

    Raises:
        UserError: ``path`` is a folder, a device, or stands in no folder.
    """
    target = Path(os.path.realpath(path))
    check(target)
    with _called(path), contextlib.ExitStack() as stack:
        file, name = _unnamed(target.parent, stack)
        yield file
        _flush(file)
        _take_name(file, name, target, stack)


@contextlib.contextmanager
def kept(path: Path, data: bytes) -> Iterator[None]:
    """``data`` on disk before the block, and under the name ``path`` when it ends well.

    So that of two files either both appear or none, where the disk is too small for one of them.

    Raises:
        UserError: ``path`` is a folder, a device, or stands in no folder.
    """
    target = Path(os.path.realpath(path))
    check(target)
    with contextlib.ExitStack() as stack:
        with _called(path):
            file, name = _unnamed(target.parent, stack)
            file.write(data)
            _flush(file)
        yield
        with _called(path):
            _take_name(file, name, target, stack)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _take_name(
    file: BinaryIO, name: Path | None, target: Path, stack: contextlib.ExitStack
) -> None:
    """Brings a file that is on disk under the name that was asked for."""
    if target.exists():
        os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
    if name is None:
        name = _named(file, target, stack)
    os.replace(name, target)
    _sync(target.parent)


def check(path: Path) -> None:
    """Refuses a path that no file can take, before any work is done."""
    if path.name == "-":
        raise UserError(
            "a file named - is asked for, which is no standard output here; name the file, or "
            "leave the option out where numbers are printed"
        )
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no ordinary file; give another name")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"the folder {path.parent} cannot be written; choose another one")


def check_apart(path: Path, **read: Path | None) -> None:
    """Refuses to write what is read, by whatever name or link; ``read`` has each by its option.

    What is read is often the only copy, and a small mistake is enough: two names changed places.
    """
    for name, source in read.items():
        if source is None:
            continue
        same = source.exists() and path.exists() and path.samefile(source)
        if same or path.resolve() == source.resolve():
            said = name if name.isupper() else f"--{name}"
            raise UserError(f"{path} is also the {said}; give the output another name")


@contextlib.contextmanager
def _called(path: Path) -> Iterator[None]:
    """Gives the name of the file to an error of the system that has none, as a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _unnamed(folder: Path, stack: contextlib.ExitStack) -> tuple[BinaryIO, Path | None]:
    """A file in ``folder`` without a name, or with a passing one where that must be."""
    with contextlib.suppress(OSError, AttributeError):
        number = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
        return stack.enter_context(os.fdopen(number, "w+b")), None
    for name in _passing_names(folder):
        with contextlib.suppress(FileExistsError):
            number = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
            stack.callback(name.unlink, missing_ok=True)
            return stack.enter_context(os.fdopen(number, "w+b")), name
    raise AssertionError("names do not end")


def _named(file: BinaryIO, target: Path, stack: contextlib.ExitStack) -> Path:
    """Gives an unnamed file a passing name beside ``target``: replacing needs one."""
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        for name in _passing_names(target.parent):
            with contextlib.suppress(FileExistsError):
                # A folder given by number makes the system follow the link to the open file.
                os.link(f"/proc/self/fd/{file.fileno()}", name.name, dst_dir_fd=folder)
                stack.callback(name.unlink, missing_ok=True)
                return name
    finally:
        os.close(folder)
    raise AssertionError("names do not end")


def _passing_names(folder: Path) -> Iterator[Path]:
    """Names that nobody else has, one after the other.

    The process's own number will not do: in containers it is the same each time, and a file that
    a killed process left would be in the way.
    """
    while True:
        yield folder / f".posenc-{secrets.token_hex(8)}.part"


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
