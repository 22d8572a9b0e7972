"""Somebody's own code, named on a command line."""

import contextlib
import ctypes
import importlib
import importlib.util
import operator
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc.cli.errors import UserError

MODEL = "model:"
"""Before the path of a configuration or the folder of a model."""


@contextlib.contextmanager
def printed_aside() -> Iterator[None]:
    """Within, what Python, C code and child processes print goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, TypeError):  # a system without a C library of that name
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def named_by(target: str) -> Any:
    """What MODULE:NAME or FILE.py:NAME names, or the path after ``model:``, which is not run."""
    if target.startswith(MODEL):
        return Path(target.removeprefix(MODEL))
    module, _, name = target.rpartition(":")
    if not module or not name:
        raise UserError(f"{target!r} names nothing; give MODULE:NAME, FILE.py:NAME or model:PATH")
    sys.path.insert(0, "")
    try:
        is_file = module.endswith(".py")
        loaded = _from_file(Path(module)) if is_file else importlib.import_module(module)
        return operator.attrgetter(name)(loaded)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{target} could not be imported: {told}") from None
    finally:
        sys.path.remove("")


def _from_file(path: Path) -> Any:
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module
