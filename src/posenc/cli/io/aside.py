"""What other people's code prints, on standard error: standard output holds a document."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from threading import current_thread, main_thread

OUT, ERR = 1, 2
"""The descriptors that C code and child processes print to."""


@contextmanager
def printed_aside() -> Iterator[None]:
    """Within, what Python, C code and child processes print goes to standard error."""
    with _descriptor_aside(), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _descriptor_aside() -> Iterator[None]:
    """Within, the descriptor of standard output is that of standard error.

    It belongs to the whole process, so that only the main thread turns it, and back. Where it is
    closed, nothing is printed there; where standard error is, what is printed goes nowhere.
    """
    if current_thread() is not main_thread():
        yield
        return
    aside = _is_open(ERR)  # before a copy takes its number
    try:
        kept = os.dup(OUT)
    except OSError:
        yield
        return
    try:
        _flush()
        _turn_out(aside)
        yield
    finally:
        _flush()
        os.dup2(kept, OUT)
        os.close(kept)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _turn_out(aside: bool) -> None:
    """To standard error; nowhere where that is closed."""
    if aside:
        os.dup2(ERR, OUT)
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, OUT)
    os.close(nowhere)


def _flush() -> None:
    """Write what C's streams and Python's own still hold, before their descriptor is another."""
    for stream in (sys.__stdout__, sys.stdout):
        with suppress(AttributeError, OSError, ValueError):  # none, full, closed
            stream.flush()  # type: ignore[union-attr]
    with suppress(AttributeError, OSError, TypeError):  # a system without a C library of that name
        ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fflush(None)
