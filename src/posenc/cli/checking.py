"""What ``posenc check`` does: import what is named, ask, print."""

import importlib
import importlib.util
import json
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any, Protocol

from posenc.audit import CannotCheckError, Report, check
from posenc.cli.atomic import atomic
from posenc.cli.errors import UserError


class Request(Protocol):
    """The arguments of the command."""

    @property
    def target(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def kind(self) -> Any: ...
    @property
    def dim(self) -> int | None: ...
    @property
    def seq_first(self) -> bool: ...


def checked(request: Request) -> Report:
    """The report on what is named.

    Raises:
        UserError: It cannot be imported or checked.
    """
    factory = _imported(request.target)
    try:
        arguments = json.loads(request.arguments)
    except json.JSONDecodeError as error:
        raise UserError(f"--arguments is no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UserError('--arguments must be a JSON object, such as {"dim": 64}')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the thing's own; they would stand before the report
        try:
            return check(
                factory,
                arguments=arguments,
                kind=request.kind,
                dim=request.dim,
                seq_first=request.seq_first,
                name=request.target,
            )
        except CannotCheckError as reason:
            raise UserError(f"could not check {request.target}: {reason}") from None


def _imported(target: str) -> Any:
    module, colon, name = target.rpartition(":")
    if not colon or not module or not name:
        raise UserError(
            f"{target!r} names nothing to check; give MODULE:FACTORY or FILE.py:FACTORY"
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


def shown(report: Report, form: str) -> None:
    """The report on standard output."""
    if form == "json":
        json.dump(report.as_dict(), sys.stdout, indent=1)
        sys.stdout.write("\n")
        return
    for line in str(report).splitlines():
        indent = " " * (4 if line.startswith("  ") else 2)
        print(textwrap.fill(line, 98, subsequent_indent=indent, break_long_words=False))


def drawn(report: Report, path: Path) -> None:
    """The error over the position, as a picture."""
    if path.suffix not in (".png", ".svg"):
        raise UserError(f"{path}: the name must end in .png or .svg")
    if not report.errors:
        raise UserError(f"no error over the position was measured; leave --figure {path} out")
    try:
        import matplotlib
    except ImportError:
        raise UserError(
            "matplotlib is missing; install it with pip install posenc[plots]"
        ) from None
    matplotlib.use("Agg")  # A file needs no display.
    from posenc.plots.error_curve import error_curve
    from posenc.plots.saving import save

    axes = error_curve({report.subject: report.errors}, title="Largest error of cos and sin")
    with atomic(path) as file:
        save(axes.figure, file, path.suffix[1:])  # type: ignore[arg-type]
