"""What is refused before work begins: positions beyond 64 bits, numbers beyond the memory."""

import os

from posenc.cli.errors import UserError
from posenc.cli.parsing import LEAST, MOST


def check_range(start: int, length: int, *, first: int = 0) -> None:
    """Refuses positions that 64 bits do not hold; ``first`` is where the counting begins.

    Example:
        >>> check_range(2**63 - 1, 1)
        >>> check_range(2**63 - 1, 2)
        Traceback (most recent call last):
        posenc.cli.errors.UserError: --start 9223372036854775807 and --length 2 go beyond the ...
    """
    if length < 1:
        raise UserError(f"--length is {length}; it must be at least 1")
    if start + length - 1 + first > MOST or start < LEAST:
        raise UserError(
            f"--start {start} and --length {length} go beyond the last position, {MOST - first}; "
            "start earlier, or take fewer"
        )


def check_memory(numbers: int) -> None:
    """Refuses what this machine could not hold at once, before it is brought down by trying.

    Raises:
        MemoryError: So many numbers in float64 are more than half of its memory.
    """
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return  # a system that does not tell
    if 8 * numbers > whole / 2:
        raise MemoryError
