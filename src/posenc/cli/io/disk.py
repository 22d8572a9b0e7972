"""How large a file will be, and whether its disk has the room."""

import shutil
from pathlib import Path

from posenc.cli.errors import UserError

# From so many bytes on, the size is said before the work begins.
LARGE = 50_000_000


def size(count: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size(950), size(1_400_000_000)
        ('950 B', '1.4 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def announcement(output: Path, bytes_: int, what: str, *, exact: bool) -> str:
    """One line on how large a file will be.

    Example:
        >>> announcement(Path("a.npz"), 31_000_000_000, "all", exact=True)
        'posenc: a.npz will take 31.0 GB: all'
    """
    return f"posenc: {output} will take {'' if exact else 'about '}{size(bytes_)}: {what}"


def check_room(output: Path, bytes_: int, advice: str) -> None:
    """Refuses a file that the disk cannot hold, before any of it is written.

    What stands there now is not counted: it stays until the new file is whole.

    Raises:
        UserError: There is not enough room.
    """
    free = shutil.disk_usage(output.absolute().parent).free
    if bytes_ > free:
        raise UserError(
            f"{output} would take {size(bytes_)}, and its disk has {size(free)} left; {advice}"
        )
