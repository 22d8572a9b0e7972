"""axe finds nothing on the pages of the site, in light and dark, on a desk and on a phone.

Every page that somebody wrote is read. Of the pages of the reference, which one template makes from
docstrings, three are: others when what they say changes.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.browser import Axe, Faults

COLORS = ("color-contrast", "link-in-text-block")
"""The rules whose answer depends on the ground."""

PHONE = ("index", "gallery", "models", "reference/commands", "tutorials/first-principles")
"""One page of each kind; what a phone shows otherwise, all pages share."""

DESK = {"width": 1280, "height": 900}

MADE = 3
"""How many pages of the reference are read."""

SHARES = 6
"""Into so many the pages are dealt: processes that share the tests then end together."""


def chosen_pages(site: Path) -> list[str]:
    """All written pages, the help of the commands, and some pages of names, drawn by their text."""
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    made = [name for name in names if name.startswith("reference/") or name == "genindex.html"]
    made.remove("reference/commands.html")
    text = b"".join((site / name).read_bytes() for name in made)
    drawn = random.Random(crc32(text)).sample(made, MADE)
    return [name for name in names if name in drawn or name not in made]


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
@pytest.mark.parametrize("share", range(SHARES))
def test_axe_finds_nothing_in_light(browser, axe, site, share):
    names = chosen_pages(site)[share::SHARES]
    assert faults(browser, axe, site, names, color_scheme="light", viewport=DESK) == {}


@pytest.mark.slow("axe reads the pages of the site")
@pytest.mark.parametrize("share", range(SHARES))
def test_axe_finds_nothing_in_dark(browser, axe, site, share):
    names = chosen_pages(site)[share::SHARES]
    dark = {"color_scheme": "dark", "viewport": DESK}
    assert faults(browser, axe, site, names, COLORS, **dark) == {}


@pytest.mark.slow("axe reads the pages of the site")
def test_axe_finds_nothing_in_dark_by_any_rule(browser, axe, site):
    dark = {"color_scheme": "dark", "viewport": DESK}
    assert faults(browser, axe, site, ["index.html", "search.html"], **dark) == {}


@pytest.mark.slow("axe reads the pages of the site")
def test_axe_finds_nothing_on_a_phone(browser, axe, site):
    names = [f"{name}.html" for name in PHONE]
    phone = {"color_scheme": "light", "viewport": {"width": 360, "height": 800}}
    assert faults(browser, axe, site, names, **phone) == {}


def test_every_written_page_is_chosen_and_other_made_ones_when_they_change(tmp_path):
    written = ["index.html", "models.html", "reference/commands.html", "tutorials/a.html"]
    made = [f"reference/{name}.html" for name in "abcdefgh"]
    for name in written + made:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    seen = set()
    for text in "abcdefghijklmnop":
        (tmp_path / made[0]).write_text(text)
        chosen = chosen_pages(tmp_path)
        assert chosen == chosen_pages(tmp_path)
        assert len(chosen) == len(written) + MADE
        assert set(written) < set(chosen)
        seen |= {*chosen} - {*written}
    assert seen == {*made}


def test_what_axe_is_asked_it_finds(browser, axe, tmp_path):
    """A page with three planted faults: gray on white, no language, an image without words."""
    text = '<title>A</title><main><h1>A</h1><p style="color:#bbb">pale</p><img src="a.png"></main>'
    (tmp_path / "page.html").write_text(text)
    found = dict(faults(browser, axe, tmp_path, ["page.html"])["page.html"])
    assert {"color-contrast", "html-has-lang", "image-alt"} <= found.keys()
    [(only, where)] = faults(browser, axe, tmp_path, ["page.html"], COLORS)["page.html"]
    assert only == "color-contrast"
    assert "pale" in where[0]
