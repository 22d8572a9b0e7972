"""What ``posenc check`` prints."""

import json
import sys
import textwrap

from posenc.audit import Report
from posenc.audit.formats import sarif

WIDTH = 98


def show(report: Report, form: str, path: str | None = None) -> None:
    """The report on standard output, as text or for machines."""
    if form == "text":
        for line in str(report).splitlines():
            _fold(line)
        return
    json.dump(report.as_dict() if form == "json" else sarif(report, path), sys.stdout, indent=1)
    sys.stdout.write("\n")


def _fold(line: str) -> None:
    if line.lstrip().startswith(">>>"):  # code is copied, so it stays in one line
        print(line)
        return
    deeper = len(line) - len(line.lstrip()) + 2
    print(
        textwrap.fill(
            line, WIDTH, subsequent_indent=" " * deeper, break_long_words=False,
            break_on_hyphens=False,
        )
    )  # fmt: skip
