"""What cannot be done, said in one line."""

import difflib
import os
from collections.abc import Iterable

LAST = 2**63 - 1
"""The last position: 64 bits hold no more."""

OF_LAB = {"duckdb", "filelock", "jinja2", "msgspec", "scipy"}
"""Packages that only the extra ``lab`` brings."""


class UserError(Exception):
    """A request that cannot be met: what came, and what was expected.

    Args:
        message: That, in one line.
        listing: Printed below it as it stands, where one line is not enough.
    """

    def __init__(self, message: str, listing: str = ""):
        super().__init__(message)
        self.listing = listing


def one_line(error: BaseException) -> str:
    """The message of ``error`` as a single line.

    Example:
        >>> one_line(FileNotFoundError(2, "No such file or directory", "a.txt"))
        'a.txt: No such file or directory'
    """
    if isinstance(error, OSError) and error.strerror:
        return (
            f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else error.strerror
        )
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory for this size; ask for fewer positions, rows or dimensions"
    if isinstance(error, OverflowError) or "Overflow when unpacking" in str(error):
        return "a whole number is beyond 64 bits"
    said = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, ImportError):
        return said
    extra = "lab" if (error.name or "").partition(".")[0] in OF_LAB else "cli"
    return f"{said}; pip install posenc[{extra}]"


def close(word: str, known: Iterable[str]) -> str:
    """What may have been meant by ``word``, as the end of a sentence.

    Example:
        >>> close("tabel", ["table", "walk"]), close("xyz", ["table"])
        ("; did you mean 'table'?", '')
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def check_least(least: int, **numbers: int | None) -> None:
    """Refuses numbers below ``least``, by the names of their options."""
    for name, number in numbers.items():
        if number is not None and number < least:
            raise UserError(f"--{name.replace('_', '-')} is {number}; it must be at least {least}")


def check_seed(seed: int, kind: str) -> None:
    """Refuses a seed where nothing is drawn from it; ``kind`` is the encoding."""
    if seed:
        raise UserError(f"--seed says nothing to {kind}, of which nothing is random; leave it out")


def check_range(start: int, length: int, *, first: int = 0) -> None:
    """Refuses positions that 64 bits do not hold; ``first`` is where the counting begins."""
    check_least(1, length=length)
    if start + length - 1 + first > LAST or start < -LAST - 1:
        raise UserError(
            f"--start {start} and --length {length} go beyond the last position, {LAST - first}"
        )


def check_memory(numbers: int) -> None:
    """Raises MemoryError where so many numbers in float64 are more than half of the memory."""
    if 16 * numbers > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError
