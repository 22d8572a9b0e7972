"""A journey and a talk without a mouse, and axe's rules."""

import pytest
from tests.explorer.conftest import SECTIONS


def focused(page) -> str:
    return page.evaluate(
        "() => document.activeElement.id || document.activeElement.dataset.name || "
        "document.activeElement.textContent"
    )


def tab_to(page, name: str) -> None:
    for _ in range(150):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    raise AssertionError(f"Tab never reaches {name}")


@pytest.mark.slow("the page in a browser")
def test_the_whole_lesson_by_keyboard(opened):
    found = opened()
    page, keys = found.page, found.page.keyboard
    keys.press("Tab")
    assert focused(page) == "To the figures"
    keys.press("Enter")
    assert focused(page) == "main"

    tab_to(page, "matrix")
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for key, row, column in (
        ("ArrowRight", 10, 1), ("ArrowDown", 11, 1), ("PageDown", 21, 1), ("PageUp", 11, 1),
        ("End", 49, 1), ("Home", 0, 1), ("ArrowUp", 0, 1), ("ArrowLeft", 0, 0),
    ):  # fmt: skip
        keys.press(key)
        assert found.text("matrix").startswith(f"PE({row},{column}) = "), key
    for key in "]][":
        keys.press(key)
    assert "PE(0) · PE(11)" in found.text("similarity")
    for said in ("Pause", "Play"):
        keys.press("Space")
        assert page.inner_text("#play") == said

    tab_to(page, "curves")
    keys.press("ArrowRight")
    keys.press("Enter")
    found.settle()
    assert page.locator('[data-pin="cursor"]').inner_text() == "Unpin 1"

    # Only the lines beside the reader are read aloud.
    loud = "() => [...document.querySelectorAll('[aria-live=polite]')].map((l) => l.dataset.live)"
    assert page.evaluate(loud) == ["curves"]

    tab_to(page, "sentence")
    keys.press("Control+a")
    keys.type("lions kill")
    assert found.text("shapes") == "embedding [2, 14] + encoding [2, 14] = sum [2, 14]"

    tab_to(page, "attention")
    keys.press("Home")
    found.settle()
    assert "“your” (0)" in page.locator('[data-cell="on"] h3').inner_text()
    found.settle()
    assert found.complaints == []


@pytest.mark.slow("axe reads the whole page")
@pytest.mark.parametrize("link", ["dim=127&base=1&dimension=126", "present=long&method=yarn"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_axe_finds_nothing(opened, axe, theme, width, link):
    found = opened(link, color_scheme=theme, viewport={"width": width, "height": 800})
    found.page.evaluate("() => document.querySelectorAll('details').forEach((d) => d.open = true)")
    found.settle()
    found.page.wait_for_timeout(200)
    assert axe.faults(found.page) == []


SHOWN = """
() => [...document.querySelectorAll("main > section")].filter((s) => !s.hidden).map((s) => s.id)
"""


@pytest.mark.slow("the page in a browser")
def test_a_talk_by_keyboard(opened):
    found = opened()
    page = found.page
    found.to("grid")
    page.wait_for_function(
        "() => document.querySelector('nav [aria-current]')?.getAttribute('href') === '#grid'"
    )
    page.locator("#present").focus()
    page.keyboard.press("Enter")
    found.settle()
    assert page.evaluate(SHOWN) == ["grid"]
    assert page.evaluate("() => document.activeElement.id") == "grid"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(SHOWN) == ["exercises"]
    for key in ("PageDown", "PageUp", "ArrowLeft"):  # there is no section after the last
        page.keyboard.press(key)
    found.settle()
    assert page.evaluate(SHOWN) == ["decoder"]
    page.keyboard.press("Escape")
    found.settle()
    assert page.evaluate(SHOWN) == SECTIONS
    assert found.complaints == []
