"""What ``posenc check`` prints."""

import json
import sys
import textwrap

from posenc.audit import Report

WIDTH = 98


def show(report: Report, form: str) -> None:
    """The report on standard output, as text or as json."""
    if form == "json":
        json.dump(report.as_dict(), sys.stdout, indent=1)
        sys.stdout.write("\n")
        return
    for line in str(report).splitlines():
        indent = " " * (4 if line.startswith("  ") else 2)
        print(textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False))
