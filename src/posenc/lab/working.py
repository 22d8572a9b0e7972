"""One run in a process of its own: ``python -m posenc.lab.working STORE FOLDER CONFIGURATION``.

The configuration is JSON; own classes lie in FOLDER. The process holds the lock of the run, and
leaves a result, or what went wrong. Its status says which.
"""

import contextlib
import errno
import json
import os
import platform
import signal
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from filelock import Timeout

from posenc import __version__
from posenc.lab.configuration import Configuration
from posenc.lab.encodings import version
from posenc.lab.store import Store
from posenc.lab.training import trained

MADE, FAILED, NO_SPACE, TAKEN = 0, 3, 4, 5
"""Made; an error that would come again; the disk is full; another process makes or made it."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where there is no space for a file."""


def main(root: str, folder: str, written: str) -> int:
    """Makes one run; see the head of this file."""
    store, configuration = Store(Path(root)), Configuration.read(json.loads(written))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    sys.path.insert(0, folder)
    os.chdir(folder)
    try:
        with store.lock(configuration.id):
            return TAKEN if store.is_done(configuration.id) else made(configuration, store)
    except Timeout:
        return TAKEN


def made(configuration: Configuration, store: Store) -> int:
    """Makes a run, or writes down why it cannot be made; a status."""
    try:
        named = configuration.extension or configuration
        if version(named.use) != named.version:
            raise ValueError(f"the source of {', '.join(named.use)} has changed; run it again.")
        make(configuration, store)
        return MADE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            return NO_SPACE
        traceback.print_exc()
        store.note_failure(configuration.id, traceback.format_exc(), final=True)
        return FAILED


def make(configuration: Configuration, store: Store) -> dict[str, Any]:
    """What the result file of a run holds; makes it first where it is not made."""
    run, extension = configuration.id, configuration.extension
    if (before := store.result(run)) is not None:
        return before
    began = time.perf_counter()
    outcome = trained(configuration, weights=extension and store.weights(extension.of))
    store.keep_weights(run, outcome.weights)
    steps = max(1, outcome.written["steps"])
    result = {
        "id": run,
        "configuration": configuration.written(),
        "outcome": outcome.written,
        "cost": {
            "seconds": round(time.perf_counter() - began, 3),
            "training_seconds": round(outcome.seconds, 3),
            "milliseconds_a_step": round(1000 * outcome.seconds / steps, 3),
        },
        "machine": {
            "host": platform.node(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "posenc": __version__,
        },
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    store.keep(run, result)
    return result


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
