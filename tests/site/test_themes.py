"""Figures and the drawing follow the switch of the theme, whatever the system prefers."""

import io
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"
GROUNDS = {"light": "#ffffff", "dark": "#131416"}
PAGE = """<!doctype html><html><head><style>{style}</style></head>
<body data-theme="{theme}" style="background: {ground}">
<article><p><img id="drawing" src="{drawing}" width="360"></p>
<p><img id="figure" src="{figure}"></p></article></body></html>"""
MORE = pytest.mark.slow("a page in a browser, once more")


def seen_of(page, name):
    """The color of an image's ground, below its middle, and its darkest and brightest, as seen."""
    seen = Image.open(io.BytesIO(page.locator(f"#{name}").screenshot())).convert("RGB")
    spread = seen.convert("L").getextrema()
    return seen.getpixel((seen.width // 2, seen.height - 3)), spread


@pytest.mark.parametrize(
    ("theme", "system", "seen"),
    [
        pytest.param("light", "dark", "light", marks=MORE),
        ("dark", "light", "dark"),
        pytest.param("auto", "light", "light", marks=MORE),
        ("auto", "dark", "dark"),
    ],
)
def test_images_are_dark_where_the_page_is(browser, tmp_path, theme, system, seen):
    (tmp_path / "page.html").write_text(
        PAGE.format(
            style=(DOCS / "_static/site.css").read_text(),
            theme=theme,
            ground=GROUNDS[seen],
            drawing=(DOCS / "pictures/how-positions-flow.svg").as_uri(),
            figure=(DOCS / "pictures/wavelengths.png").as_uri(),
        )
    )
    page = browser.new_page(color_scheme=system)
    page.goto((tmp_path / "page.html").as_uri())
    ground = tuple(bytes.fromhex(GROUNDS[seen][1:]))
    for name in ("drawing", "figure"):
        ground_seen, (darkest, brightest) = seen_of(page, name)
        assert max(abs(a - b) for a, b in zip(ground_seen, ground, strict=True)) <= 12, (
            name,
            ground_seen,
        )
        assert brightest - darkest > 200, "ink on ground can be told apart"
    page.close()
