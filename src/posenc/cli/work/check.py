"""``posenc check``: what is somebody's own implementation, and which known fault has it?"""

import json
import sys
import warnings
from typing import Any

from posenc import audit
from posenc.audit.report import sarif
from posenc.cli.errors import UserError
from posenc.cli.files import check_figure, write_figure
from posenc.cli.formats import print_json
from posenc.cli.screen import print_folded
from posenc.cli.targets import named_by, printed_aside


def check(asked: Any) -> int:
    """Checks, prints, and says by the status whether something was found."""
    check_figure(asked.figure, asked.dpi)
    with printed_aside():  # what the thing prints would stand in the document
        report = _report(asked)
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


def _report(asked: Any) -> audit.Report:
    target, arguments = named_by(asked.target), json.loads(asked.arguments)
    same = ("kind", "layout", "call", "dim", "length", "strict", "seq_first")
    given: dict[str, Any] = {name: getattr(asked, name) for name in same}
    given |= {"ignore": asked.ignore or (), "only": asked.only or (), "name": asked.target}
    with warnings.catch_warnings(action="ignore"):  # those of the thing
        try:
            return audit.check(target, arguments=arguments, **given)
        except audit.CannotCheckError as reason:
            told, *listing = str(reason).splitlines()
            error = UserError(f"could not check {asked.target}: {told}")
            error.__notes__ = listing
            raise error from None
