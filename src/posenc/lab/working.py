"""One run in a process of its own: ``python -m posenc.lab.working STORE RUN TOKEN``.

It reads its configuration from standard input, keeps its lease alive, and leaves a result, or what
went wrong. Its status says which: 0 made, 3 an error that would come again, 4 the disk is full.
"""

import os
import platform
import signal
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from posenc.lab.configuration import Configuration
from posenc.lab.encodings import version
from posenc.lab.files import FULL
from posenc.lab.leases import Heartbeat, Lease
from posenc.lab.store import Store
from posenc.lab.training import Outcome, Watch, trained

MADE, FAILED, NO_SPACE = 0, 3, 4


def make(
    configuration: Configuration, store: Store, *, every: float = 10.0, watch: Watch | None = None
) -> dict[str, Any]:
    """Makes a run, unless it is made: weights first, then the result that says that it is.

    Args:
        configuration: The run.
        store: Where it is kept.
        every: Seconds between checkpoints.
        watch: Told each step.

    Returns:
        What the result file holds.
    """
    run, extension = configuration.id, configuration.extension
    before = store.result(run)
    if before is not None:
        return before
    weights = None if extension is None else store.weights(extension.of)
    began = time.perf_counter()
    outcome = trained(
        configuration,
        checkpoint=store.path("checkpoints", run),
        every=every,
        weights=weights,
        watch=watch,
    )
    store.keep_weights(run, outcome.weights)
    result = {
        "id": run,
        "configuration": configuration.written(),
        "outcome": outcome.written,
        "cost": _cost(outcome, time.perf_counter() - began),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    store.keep(run, result)
    return result


def machine() -> dict[str, Any]:
    """What runs are made on: times are compared on the same one alone."""
    import torch

    from posenc import __version__

    return {
        "host": platform.node(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "posenc": __version__,
    }


def main(words: list[str]) -> int:
    """Makes one run; see the head of this file."""
    root, run, token = words
    store = Store(Path(root))
    lease = Lease(store.path("leases", run), token)
    lease.take_over()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides
    try:
        with Heartbeat(lease):
            return _made(store, run, sys.stdin.buffer.read().decode())
    finally:
        lease.release()


def _made(store: Store, run: str, written: str) -> int:
    import json

    try:
        given = json.loads(written)
        configuration = Configuration.read(given["configuration"])
        sys.path[:0] = given.get("path", [])
        os.chdir(given.get("folder", "."))
        if configuration.id != run:
            raise ValueError(f"run {run} was asked for with the configuration of another.")
        _check_source(configuration)
        make(configuration, store, every=given.get("every", 10.0))
        return MADE
    except OSError as error:
        if error.errno in FULL:
            return NO_SPACE
        return _failed(store, run)
    except Exception:
        return _failed(store, run)


def _check_source(configuration: Configuration) -> None:
    """Refuses encodings whose source is no longer the one that the run is named by."""
    made = configuration.extension or configuration
    if (here := version(made.use)) != made.version:
        raise ValueError(
            f"the source of {', '.join(made.use)} has the digest {here} here, and had "
            f"{made.version} where the run was planned; run the grid again, from this source."
        )


def _failed(store: Store, run: str) -> int:
    said = traceback.format_exc()
    sys.stderr.write(said)
    try:
        store.note_failure(run, said, final=True)
    except OSError as error:
        return NO_SPACE if error.errno in FULL else FAILED
    return FAILED


def _cost(outcome: Outcome, seconds: float) -> dict[str, float]:
    steps = max(1, outcome.written["steps"])
    return {
        "seconds": round(seconds, 3),
        "training_seconds": round(outcome.seconds, 3),
        "milliseconds_a_step": round(1000 * outcome.seconds / steps, 3),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
