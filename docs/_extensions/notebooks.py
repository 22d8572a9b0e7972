"""Tutorials as notebooks: each page that runs is offered as an ``.ipynb`` to download.

The notebooks are written into ``docs/notebooks/`` when a build begins, from the pages themselves; a
page gets a line with the link under its title.
"""

import re
from pathlib import Path

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode
from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")
"""A link to another page of the site, which a notebook in somebody's folder does not have."""

NEEDED = (
    "This notebook is a page of the documentation of posenc. It needs "
    "`pip install 'posenc[plots]' transformers`."
)


def pages(folder: Path) -> list[Path]:
    """The pages that run."""
    return sorted((folder / "tutorials").glob("*.md"))


def notebook(text: str) -> NotebookNode:
    """The notebook of a page, without outputs.

    Links to other pages become their words, what it needs stands first, and a cell that the site
    hides is tagged as there.
    """
    made = read_myst_markdown_notebook(text)
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"  # not by chance, so that a second build writes the same bytes
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
    made.cells.insert(0, nbformat.v4.new_markdown_cell(NEEDED, id="needed"))
    nbformat.validate(made)
    return made


def linked(text: str, name: str) -> str:
    """The page with its link, behind the title."""
    link = f"{{download}}`This page as a notebook <../notebooks/{name}.ipynb>`"
    return re.sub(r"^(# .+\n)", rf"\1\n{link}\n", text, count=1, flags=re.MULTILINE)


def write(app: Sphinx) -> None:
    """All notebooks; a file that is right already stays as it is."""
    source = Path(app.srcdir)
    folder = source / "notebooks"
    folder.mkdir(exist_ok=True)
    for page in pages(source):
        path = folder / f"{page.stem}.ipynb"
        text = nbformat.writes(notebook(page.read_text()))
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def link(_app: Sphinx, name: str, content: list[str]) -> None:
    """Put the link into a tutorial as it is read."""
    if name.startswith("tutorials/"):
        content[0] = linked(content[0], name.removeprefix("tutorials/"))


def setup(app: Sphinx) -> dict[str, bool]:
    """The notebooks are there before any page is read."""
    app.connect("builder-inited", write)
    app.connect("source-read", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
