"""axe finds nothing on the pages of the site, in light and dark, on a desk and on a phone.

Every page that somebody wrote is read, and one of the reference, which a template makes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.browser import Axe, Faults

COLORS = ("color-contrast", "link-in-text-block")
"""The rules whose answer depends on the ground."""

PHONE = ("index", "gallery", "models", "reference/commands", "tutorials/first-principles")
"""One page of each kind; what a phone shows otherwise, all pages share."""

MADE = ("reference/commands.html", "reference/inspection.html")
DESK = {"width": 1280, "height": 900}

SHARES = 6
"""Into so many the pages are dealt: processes that share the tests then end together."""


def chosen_pages(site: Path) -> list[str]:
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    return [
        name
        for name in names
        if name in MADE or not (name.startswith("reference/") or name == "genindex.html")
    ]


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


@pytest.mark.slow("axe reads the pages of the site")
@pytest.mark.parametrize(("theme", "rules"), [("light", ()), ("dark", COLORS)])
@pytest.mark.parametrize("share", range(SHARES))
def test_axe_finds_nothing_on_a_desk(browser, axe, site, theme, rules, share):
    names = chosen_pages(site)[share::SHARES]
    assert faults(browser, axe, site, names, rules, color_scheme=theme, viewport=DESK) == {}


@pytest.mark.slow("axe reads the pages of the site")
def test_axe_finds_nothing_on_a_phone(browser, axe, site):
    names = [f"{name}.html" for name in PHONE]
    phone = {"color_scheme": "light", "viewport": {"width": 360, "height": 800}}
    assert faults(browser, axe, site, names, **phone) == {}


@pytest.mark.slow("the page in a browser")
def test_what_axe_is_asked_it_finds(browser, axe, tmp_path):
    """A page with three planted faults: gray on white, no language, an image without words."""
    text = '<title>A</title><main><h1>A</h1><p style="color:#bbb">pale</p><img src="a.png"></main>'
    (tmp_path / "page.html").write_text(text)
    found = dict(faults(browser, axe, tmp_path, ["page.html"])["page.html"])
    assert {"color-contrast", "html-has-lang", "image-alt"} <= found.keys()
