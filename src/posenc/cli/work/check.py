"""``posenc check``: what is somebody's own implementation, and which known fault has it?"""

import contextlib
import ctypes
import importlib
import importlib.util
import json
import operator
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc import audit
from posenc.audit.report import sarif
from posenc.cli.errors import UserError
from posenc.cli.files import check_figure, write_figure
from posenc.cli.printing import print_folded, print_json


def check(asked: Any) -> int:
    """Checks, prints, and says by the status whether something was found."""
    check_figure(asked.figure, asked.dpi)
    same = ("kind", "layout", "call", "dim", "length", "strict", "seq_first")
    given: dict[str, Any] = {name: getattr(asked, name) for name in same}
    given |= {"ignore": asked.ignore or (), "only": asked.only or (), "name": asked.target}
    with printed_aside():
        target, arguments = named_by(asked.target), json.loads(asked.arguments)
        try:
            report = audit.check(target, arguments=arguments, **given)
        except audit.CannotCheckError as reason:
            told, *listing = str(reason).splitlines()
            error = UserError(f"could not check {asked.target}: {told}")
            error.__notes__ = listing
            raise error from None
    if asked.format == "text":
        print_folded(str(report).splitlines())
    elif asked.format == "json":
        print_json(report.as_dict())
    else:
        module = asked.target.rpartition(":")[0]  # the file, for annotations of code scanning
        print_json(sarif(report, module if module.endswith(".py") else None))
    if asked.figure is not None and report.errors:
        from posenc.plots import error_curve

        title = "Largest error of cos and sin"
        axes = error_curve({report.subject: report.errors}, title=title)
        write_figure(axes, asked.figure, asked.dpi, asked.format)
    elif asked.figure is not None:
        told = "is not drawn: no error over the position was measured"
        print(f"posenc: {asked.figure} {told}", file=sys.stderr)
    return report.status


@contextlib.contextmanager
def printed_aside() -> Iterator[None]:
    """Within, what somebody's code prints goes to standard error, and what it warns of nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        with contextlib.suppress(OSError, TypeError):  # a system without a C library of that name
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def named_by(target: str) -> Any:
    """What MODULE:NAME or FILE.py:NAME names, or the path after ``model:``, which is not run."""
    if target.startswith("model:"):  # the path of a configuration, or the folder of a model
        return Path(target.removeprefix("model:"))
    module, _, name = target.rpartition(":")
    if not module or not name:
        raise UserError(f"{target!r} names nothing; give MODULE:NAME, FILE.py:NAME or model:PATH")
    sys.path.insert(0, "")
    try:
        if not module.endswith(".py"):
            loaded: Any = importlib.import_module(module)
        else:
            path = Path(module)
            spec: Any = importlib.util.spec_from_file_location(path.stem, path)
            loaded = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = loaded  # dataclasses and pickle look their module up
            spec.loader.exec_module(loaded)
        return operator.attrgetter(name)(loaded)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{target} could not be imported: {told}") from None
    finally:
        sys.path.remove("")
