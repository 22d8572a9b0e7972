"""What goes wrong, said in one line."""

import errno
import os


class UserError(Exception):
    """A request that cannot be met: what came, what was expected, what to do.

    Args:
        message: That, in one line.
        listing: What is printed below it as it stands, where one line is not enough.
    """

    def __init__(self, message: str, listing: str = ""):
        super().__init__(message)
        self.listing = listing


def check_seed(seed: int, kind: str) -> None:
    """Refuse a seed, other than the usual 0, where nothing is drawn from it.

    Raises:
        UserError: There is one; ``kind`` is the encoding.
    """
    if seed:
        raise UserError(f"--seed says nothing to {kind}, of which nothing is random; leave it out")


class Terminated(BaseException):
    """The process was asked to end; files in progress are cleaned up on the way out."""

    def __init__(self, signal_number: int):
        super().__init__(signal_number)
        self.status = 128 + signal_number


NOTHING = "nothing was written; "

ADVICE = {
    errno.ENOSPC: f"{NOTHING}free some space or choose another folder",
    errno.EDQUOT: f"{NOTHING}free some space or choose another folder",
    errno.EFBIG: f"{NOTHING}the file is larger than this system allows",
    errno.EROFS: "choose a folder that can be written",
    errno.EACCES: "check its permissions",
    errno.ENOENT: "check the path",
    errno.EISDIR: "give a file, not a folder",
}


def one_line(error: BaseException) -> str:
    """The message of ``error`` as a single line.

    Example:
        >>> one_line(FileNotFoundError(2, "No such file or directory", "a.txt"))
        'a.txt: No such file or directory; check the path'
    """
    if isinstance(error, OSError) and error.errno is not None:
        return _system_error(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory for this size; ask for fewer positions, rows or dimensions"
    if "Overflow when unpacking" in str(error) or isinstance(error, OverflowError):
        return "a whole number is beyond 64 bits; give one between -2^63 and 2^63 - 1"
    return " ".join(str(error).split()) or type(error).__name__


def _system_error(error: OSError) -> str:
    advice = ADVICE.get(error.errno or 0, "")
    if not isinstance(error.filename, str | bytes):
        # Of what goes to the screen or a pipe, a part has arrived.
        return f"{error.strerror}; {advice.removeprefix(NOTHING)}".removesuffix("; ")
    name = os.fsdecode(error.filename)
    return f"{name}: {error.strerror}; {advice}".removesuffix("; ")
