"""What the page gives away: files, a link, and Python, each read back."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from tests.explorer.conftest import FIGURES

import posenc
from posenc import Sinusoidal

pytestmark = pytest.mark.slow("the page in a browser")

CAUGHT = """
async (kind) => {
  let caught;
  URL.createObjectURL = (blob) => { caught = blob; return "data:,"; };
  HTMLAnchorElement.prototype.click = () => {};
  const texts = {};
  for (const stage of document.querySelectorAll(".stage")) {
    const { name } = stage.dataset;
    document.querySelector(`[aria-label="Save ${name} as ${kind}"]`).click();
    texts[name] = await caught.text();
  }
  return texts;
}
"""
STATE = "dim=14&length=20&position=3&dimension=5&convention=concatenated"


@pytest.fixture
def saved(opened):
    """Presses a save button and gives the file's bytes."""
    found = opened(STATE)

    def save(figure: str, kind: str) -> bytes:
        with found.page.expect_download() as download:
            found.page.locator(f'[aria-label="Save {figure} as {kind.upper()}"]').click()
        assert download.value.suggested_filename == f"posenc-{figure}.{kind}"
        return Path(download.value.path()).read_bytes()

    return save


def expected() -> torch.Tensor:
    encoding = Sinusoidal(14, convention="concatenated")
    return encoding.table(torch.arange(20), dtype=torch.float64)


def about(parameters: dict) -> None:
    assert parameters["convention"] == "concatenated"
    assert (parameters["dim"], parameters["length"], parameters["position"]) == (14, 20, 3)


def test_numbers(saved):
    data = json.loads(saved("matrix", "json"))
    first, *lines = saved("matrix", "csv").decode().splitlines()
    told = json.loads(first.removeprefix("# "))
    assert data["posenc"] == told["version"] == posenc.__version__
    head, *rows = csv.reader(lines)
    assert (data["columns"][:2], head[-1]) == (["position", "dimension 0"], "dimension 13")
    for parameters, values in ((data["parameters"], data["rows"]), (told, rows)):
        about(parameters)
        found = torch.tensor([[float(x) for x in row[1:]] for row in values], dtype=torch.float64)
        torch.testing.assert_close(found, expected(), rtol=0, atol=1e-12)


def test_svg(saved):
    root = ElementTree.fromstring(saved("profile", "svg"))
    space = {"s": "http://www.w3.org/2000/svg"}
    said = json.loads(root.findtext("s:metadata", namespaces=space))
    assert said["version"] == posenc.__version__
    about(said["parameters"])
    assert "dot product" in [text.text for text in root.iterfind(".//s:text", space)]
    picture = ElementTree.fromstring(saved("matrix", "svg")).find(".//s:image", space)
    assert picture.attrib["href"].startswith("data:image/png;base64,")


def test_every_figure_saves_numbers_that_can_be_read(opened):
    found = opened()
    # Browsers allow few downloads in a row, so each file is caught before it becomes one.
    texts = found.page.evaluate(CAUGHT, "CSV")
    assert len(texts) == FIGURES
    for name, text in texts.items():
        first, *lines = text.splitlines()
        assert json.loads(first.removeprefix("# "))["length"] == 50
        head, *rows = csv.reader(lines)
        assert rows
        assert all(len(row) == len(head) for row in rows), name


def test_the_copied_python_prints_the_number_of_the_page(opened):
    found = opened(f"{STATE}&dtype=bfloat16")
    found.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found.page.click("#copy-python")
    program = found.page.evaluate("() => navigator.clipboard.readText()")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert found.text("matrix").endswith(f"= {float(ran.stdout):.4f}".replace("-", "−"))
