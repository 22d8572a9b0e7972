"""Who makes which run: a file that only one can create, and that grows old with its owner."""

import contextlib
import fcntl
import json
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

STALE = 60.0
"""Seconds without a sign of life from which a lease counts for nothing."""

BEAT = 5.0
"""Seconds between two signs of life."""


@dataclass(frozen=True)
class Lease:
    """A claim on one run.

    Attributes:
        path: Its file; its time of modification is the last sign of life.
        token: What tells this claim from others on the same run.
    """

    path: Path
    token: str

    def is_held(self) -> bool:
        """Whether it still is ours."""
        return _read(self.path).get("token") == self.token

    def take_over(self) -> None:
        """The calling process is the owner from now on; whoever claimed it has started us."""
        with _alone(self.path.parent):
            if self.is_held():
                self.path.write_text(_owner(self.token))

    def beat(self) -> None:
        """A sign of life."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path)

    def release(self) -> None:
        """Leaves the run to others."""
        with _alone(self.path.parent):
            if self.is_held():
                self.path.unlink(missing_ok=True)


def claim(path: Path) -> Lease | None:
    """The lease of ``path``; None where somebody alive has it.

    It is created exclusively (O_EXCL). One whose owner is dead, or has given no sign of life for a
    minute, is broken by one process at a time.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run"
        >>> mine = claim(path)
        >>> claim(path) is None
        True
        >>> mine.release()
        >>> claim(path) is None
        False
    """
    with _alone(path.parent):
        if path.exists() and is_stale(path):
            path.unlink(missing_ok=True)
        token = secrets.token_hex(8)
        try:
            number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return None
        with os.fdopen(number, "w") as file:
            file.write(_owner(token))
        return Lease(path, token)


def is_stale(path: Path) -> bool:
    """Whether the owner of a lease is dead or has been silent for too long."""
    try:
        silent = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    owner = _read(path)
    if owner.get("host") == socket.gethostname() and "pid" in owner:
        return not _lives(owner["pid"], owner.get("born"))
    return silent > STALE


class Heartbeat:
    """Signs of life from a thread, while the block runs.

    Args:
        lease: What is kept.
        seconds: Between two of them.
    """

    def __init__(self, lease: Lease, seconds: float = BEAT):
        self.lease, self.seconds = lease, seconds
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while not self.done.wait(self.seconds):
            self.lease.beat()

    def __enter__(self) -> "Heartbeat":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def _owner(token: str) -> str:
    pid = os.getpid()
    told = {"token": token, "host": socket.gethostname(), "pid": pid, "born": _born(pid)}
    return json.dumps(told)


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def _lives(pid: int, born: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _born(pid) == born  # the number may have been given to another process since


def _born(pid: int) -> str | None:
    """When a process began, as the system counts it; None where it does not tell, or it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


@contextlib.contextmanager
def _alone(folder: Path):
    """One process at a time looks at leases and changes them; the system frees it at death."""
    with open(folder / ".lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
