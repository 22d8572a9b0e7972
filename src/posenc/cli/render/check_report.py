"""What ``posenc check`` prints."""

import json
import sys

from posenc.audit import Report
from posenc.audit.formats import sarif
from posenc.cli.render.screen import folded


def show(report: Report, form: str, path: str | None = None) -> None:
    """The report on standard output, as text or for machines."""
    if form == "text":
        for line in str(report).splitlines():
            # Code is copied, so it stays in one line.
            print(line if line.lstrip().startswith(">>>") else folded(line))
        return
    json.dump(report.as_dict() if form == "json" else sarif(report, path), sys.stdout, indent=1)
    sys.stdout.write("\n")
