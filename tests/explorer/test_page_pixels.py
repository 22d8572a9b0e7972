"""Colors on the canvas against the color tables, cell by cell."""

import re
from importlib.resources import files

import matplotlib
import numpy as np
import pytest
import torch

from posenc import Sinusoidal
from posenc.plots.style import LOOKS, SIGNED_STOPS

pytestmark = pytest.mark.slow("the page in a browser")

DRAW = files("posenc.explorer").joinpath("page", "draw")
PIXELS = """
(points) => {
  const ctx = document.querySelector('[data-name="matrix"] canvas').getContext("2d");
  return points.map(([x, y]) => Array.from(ctx.getImageData(x, y, 1, 1).data.slice(0, 3)));
}
"""
CURSOR = re.compile(r"PE\((\d+),(\d+)\)")


def test_the_palettes_are_those_of_the_figures():
    text = DRAW.joinpath("palettes.js").read_text()
    for theme, stops in SIGNED_STOPS.items():
        found = [re.findall(r"#\w{6}", line) for line in re.findall(rf"{theme}: \[.*", text)]
        assert found == [list(stops), list(LOOKS[theme].lines)]


@pytest.mark.parametrize("name", ["cividis", "twilight"])
def test_the_published_color_maps_are_exact(name):
    text = DRAW.joinpath("color_tables.js").read_text()
    digits = "".join(
        re.findall(r'"([0-9a-f]+)"', text.split(f"{name.upper()} = ")[1].split("]")[0])
    )
    found = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(256, 3)
    expected = matplotlib.colormaps[name](np.arange(256))[:, :3] * 255
    assert np.abs(found - expected).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("link", "dim", "length"), [("", 128, 50), ("dim=1024&length=4096&position=4000", 1024, 4096)]
)
def test_a_cell_has_the_color_of_its_number(opened, theme, link, dim, length):
    found = opened(link, color_scheme=theme)
    found.to("matrix")
    points = [(100, 60), (107, 61), (133, 222), (301, 333), (420, 130), (555, 400)]
    pixels = found.page.evaluate(PIXELS, points)
    box = found.page.locator('[data-name="matrix"] canvas').bounding_box()
    table = Sinusoidal(dim).table(torch.arange(length), dtype=torch.float64)
    seen = set()
    for (x, y), pixel in zip(points, pixels, strict=True):
        found.page.mouse.move(box["x"] + x + 0.5, box["y"] + y + 0.5)
        match = CURSOR.match(found.text("matrix"))
        assert match
        p, j = int(match[1]), int(match[2])
        seen.add((p, j))
        expected = LOOKS[theme].signed((table[p, j].item() + 1) / 2, bytes=True)[:3]
        # One shade either way: a number may lie on the border of two.
        assert np.abs(np.array(pixel) - np.array(expected, int)).max() <= 6, (p, j)
    assert len(seen) > 4
