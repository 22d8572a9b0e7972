"""One run in a process of its own: ``python -m posenc.lab.working STORE RUN JSON``.

The JSON holds the configuration. The process holds the lock of the run, and leaves a result, or
what went wrong. Its status says which.
"""

import contextlib
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
from posenc.lab.files import FULL
from posenc.lab.store import Store
from posenc.lab.training import trained

MADE, FAILED, NO_SPACE, TAKEN = 0, 3, 4, 5
"""Made; an error that would come again; the disk is full; another process makes or made it."""


def make(configuration: Configuration, store: Store) -> dict[str, Any]:
    """What the result file of a run holds; makes it first where it is not made."""
    run, extension = configuration.id, configuration.extension
    if (before := store.result(run)) is not None:
        return before
    began = time.perf_counter()
    weights = None if extension is None else store.weights(extension.of)
    outcome = trained(configuration, weights=weights)
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


def main(words: list[str]) -> int:
    """Makes one run; see the head of this file."""
    store, run, given = Store(Path(words[0])), *words[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    try:
        with store.lock(run):
            return TAKEN if store.is_done(run) else made(store, run, given)
    except Timeout:
        return TAKEN


def made(store: Store, run: str, given: str) -> int:
    """Makes what is asked for, as JSON says it; a status."""
    try:
        asked = json.loads(given)
        configuration = Configuration.read(asked["configuration"])
        folder = asked.get("folder", ".")
        sys.path.insert(0, folder)
        os.chdir(folder)
        named = configuration.extension or configuration
        if version(named.use) != named.version:
            raise ValueError(f"the source of {', '.join(named.use)} has changed; run it again.")
        make(configuration, store)
        return MADE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            return NO_SPACE
        traceback.print_exc()
        store.note_failure(run, traceback.format_exc(), final=True)
        return FAILED


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
