"""What a run needs to go on where it was killed: whole on disk, or the one before."""

import contextlib
import pickle
from pathlib import Path
from typing import Any

import torch

from posenc.lab.files import FULL, whole


def save(path: Path, state: dict[str, Any]) -> bool:
    """Keeps ``state``; False where the disk is full, which costs time at worst and no result."""
    try:
        with whole(path) as file:
            torch.save(state, file)
    except OSError as error:
        if error.errno in FULL:
            return False
        raise
    except RuntimeError as error:
        # torch's writer says a full disk in words of its own.
        if isinstance(error.__context__, OSError) and error.__context__.errno in FULL:
            return False
        raise
    return True


def load(path: Path | None, run: str) -> dict[str, Any] | None:
    """What was kept of ``run``; None where that is nothing, or not to be read."""
    if path is None:
        return None
    with contextlib.suppress(FileNotFoundError, RuntimeError, EOFError, pickle.UnpicklingError):
        state = torch.load(path, weights_only=True)
        if state.get("id") == run:
            return state
    return None
