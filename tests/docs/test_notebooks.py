"""Tutorials as notebooks: what a reader downloads is the page, and runs."""

import ast
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="the site is built where the extra `docs` is installed")

DOCS = Path(__file__).parents[2] / "docs"


def extension():
    path = DOCS / "_extensions" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


notebooks = extension()
PAGES = notebooks.pages(DOCS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_cell_of_a_page_is_in_its_notebook(page):
    text = page.read_text()
    made = notebooks.notebook(text)
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert len(code) == text.count("```{code-cell}") > 5
    assert all(ast.parse(source).body for source in code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_no_links_into_the_site_and_no_markup_of_it(page):
    made = notebooks.notebook(page.read_text())
    prose = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert ".md" not in prose
    assert "```{" not in prose


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_have_alternative_texts(page):
    cells = notebooks.notebook(page.read_text()).cells
    drawing = [cell for cell in cells if cell.cell_type == "code" and "= plots." in cell.source]
    assert all(len(cell.metadata["mystnb"]["image"]["alt"]) > 40 for cell in drawing)


@pytest.mark.slow("starts a kernel")
def test_a_notebook_runs():
    from nbclient import NotebookClient

    made = notebooks.notebook((DOCS / "tutorials" / "first-principles.md").read_text())
    NotebookClient(made, timeout=300, kernel_name="python3").execute()
    told = [cell for cell in made.cells if cell.cell_type == "code" and cell.outputs]
    assert len(told) > 10
