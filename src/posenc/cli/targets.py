"""Somebody's own code, named on a command line."""

import contextlib
import ctypes
import importlib
import importlib.util
import json
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


def imported(target: str) -> Any:
    """What MODULE:NAME or FILE.py:NAME names."""
    module, _, name = target.rpartition(":")
    if not module or not name:
        raise UserError(
            f"{target!r} names nothing to check; give MODULE:FACTORY, FILE.py:FACTORY or model:PATH"
        )
    is_file = module.endswith(".py")
    if is_file and not Path(module).is_file():
        raise UserError(f"{module} is no file; give a module's name or the path of a .py file")
    sys.path.insert(0, "")
    try:
        loaded = _from_file(Path(module)) if is_file else importlib.import_module(module)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{module} could not be imported: {told}") from None
    finally:
        sys.path.remove("")
    try:
        return operator.attrgetter(name)(loaded)
    except AttributeError:
        raise UserError(f"{module} has no {name}; check the name after the colon") from None


def arguments_in(text: str) -> dict[str, Any]:
    """The arguments of a constructor, from what follows ``--arguments``."""
    try:
        arguments = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"--arguments is no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UserError('--arguments must be a JSON object, such as {"dim": 64}')
    return arguments


def _from_file(path: Path) -> Any:
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module
