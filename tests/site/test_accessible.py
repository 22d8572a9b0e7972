"""axe finds nothing on any page of the site, in light and dark, on a desk and on a phone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Axe, Faults

COLORS = ("color-contrast", "link-in-text-block")
"""The rules whose answer depends on the ground."""

PHONE = ("index", "gallery", "models", "reference/commands", "tutorials/first-principles")
"""One page of each kind; what a phone shows otherwise, all pages share."""

DESK = {"width": 1280, "height": 900}


def all_pages(site: Path) -> list[str]:
    return [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]


def faults(
    browser: Any, axe: Axe, site: Path, names: list[str], rules: Sequence[str] = (), **look: Any
) -> dict[str, Faults]:
    """What axe finds on each page; pages without a fault are left out."""
    context = browser.new_context(**look)
    context.set_default_timeout(300_000)  # a page of a megabyte, on a busy machine
    page, found = context.new_page(), {}
    for name in names:
        page.goto((site / name).as_uri())
        found[name] = axe.faults(page, rules)
    context.close()
    return {name: broken for name, broken in found.items() if broken}


@pytest.mark.slow("axe reads every page of the site")
def test_axe_finds_nothing_in_light(browser, axe, site):
    assert faults(browser, axe, site, all_pages(site), color_scheme="light", viewport=DESK) == {}


@pytest.mark.slow("axe reads every page of the site")
def test_axe_finds_nothing_in_dark(browser, axe, site):
    dark = {"color_scheme": "dark", "viewport": DESK}
    assert faults(browser, axe, site, all_pages(site), COLORS, **dark) == {}
    assert faults(browser, axe, site, ["index.html", "search.html"], **dark) == {}


@pytest.mark.slow("axe reads pages of the site")
def test_axe_finds_nothing_on_a_phone(browser, axe, site):
    names = [f"{name}.html" for name in PHONE]
    phone = {"color_scheme": "light", "viewport": {"width": 360, "height": 800}}
    assert faults(browser, axe, site, names, **phone) == {}


def test_what_axe_is_asked_it_finds(browser, axe, tmp_path):
    """A page with three planted faults: gray on white, no language, an image without words."""
    text = '<title>A</title><main><h1>A</h1><p style="color:#bbb">pale</p><img src="a.png"></main>'
    (tmp_path / "page.html").write_text(text)
    found = dict(faults(browser, axe, tmp_path, ["page.html"])["page.html"])
    assert {"color-contrast", "html-has-lang", "image-alt"} <= found.keys()
    [(only, where)] = faults(browser, axe, tmp_path, ["page.html"], COLORS)["page.html"]
    assert only == "color-contrast"
    assert "pale" in where[0]
