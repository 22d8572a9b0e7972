"""One model type in a process of its own: some take too long, and cannot be stopped otherwise."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

SECONDS = 60


def apart(row: Callable[[], dict[str, Any]], seconds: int = SECONDS) -> dict[str, Any] | None:
    """What ``row()`` gives there, which is written as JSON; ``None`` where it took longer."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(seconds)
        try:
            found = json.dumps(row())
            with os.fdopen(write, "w") as out:
                out.write(found)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        text = lines.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None
