"""A comparison as one offline page, as Markdown and as CSV: the same numbers in each."""

from pathlib import Path

from posenc.lab.comparison import Comparison
from posenc.lab.files import whole
from posenc.lab.report.delimited import as_csv
from posenc.lab.report.markdown import as_markdown
from posenc.lab.report.page import as_html


def write(comparison: Comparison, path: Path) -> list[Path]:
    """The page at ``path``, with Markdown and CSV of the same name beside it.

    Returns:
        What was written.
    """
    made = {
        path: as_html(comparison),
        path.with_suffix(".md"): as_markdown(comparison),
        path.with_suffix(".csv"): as_csv(comparison),
    }
    for each, text in made.items():
        with whole(each) as file:
            file.write(text.encode())
    return list(made)


__all__ = ["as_csv", "as_html", "as_markdown", "write"]
