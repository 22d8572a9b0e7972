"""Somebody's own code, named on a command line."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from posenc.cli.errors import UserError


def imported(target: str) -> Any:
    """What MODULE:NAME or FILE.py:NAME names.

    Raises:
        UserError: It names nothing, or its module cannot be imported.

    Example:
        >>> imported("json:dumps").__name__
        'dumps'
    """
    module, colon, name = target.rpartition(":")
    if not colon or not module or not name:
        raise UserError(
            f"{target!r} names nothing to check; give MODULE:FACTORY, FILE.py:FACTORY or model:PATH"
        )
    sys.path.insert(0, "")
    try:
        loaded = (
            _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{module} could not be imported: {type(error).__name__}: {error}"
        ) from None
    finally:
        sys.path.remove("")
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise UserError(f"{module} has no {name}; check the name after the colon")
        loaded = getattr(loaded, part)
    return loaded


def arguments_in(text: str) -> dict[str, Any]:
    """The arguments of a constructor, from what follows ``--arguments``.

    Raises:
        UserError: It is no JSON object.

    Example:
        >>> arguments_in('{"dim": 64}')
        {'dim': 64}
    """
    try:
        arguments = json.loads(text, object_pairs_hook=_once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"--arguments is no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UserError('--arguments must be a JSON object, such as {"dim": 64}')
    return arguments


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, of which Python would keep the last of each name."""
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"--arguments has {', '.join(twice)} twice; give each name once")
    return dict(pairs)


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"{path} is no file; give a module's name or the path of a .py file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module
