"""The bar of contents that stays, and one section at a time for a room."""

import pytest
from tests.explorer.conftest import SECTIONS

CURRENT = "() => document.querySelector('nav [aria-current]')?.getAttribute('href')"
SHOWN = """
() => [...document.querySelectorAll("main > section")].filter((s) => !s.hidden).map((s) => s.id)
"""


def test_the_page_knows_its_own_sections(javascript):
    assert javascript(["state_defaults.SECTION_IDS"])[0] == SECTIONS


@pytest.mark.parametrize(
    "width", [pytest.param(1280, marks=pytest.mark.slow("the desk, where there is more room")), 360]
)
def test_the_bar_stays_and_says_where_the_reader_is(opened, width):
    found = opened(viewport={"width": width, "height": 740})
    for section in ("clocks", "biases", "why"):
        found.to(section)
        found.page.wait_for_function(f"() => ({CURRENT})() === '#{section}'")
        box = found.page.locator("nav#contents").bounding_box()
        top = 0 if section != "why" else None
        assert top is None or abs(box["y"]) < 1
        link = found.page.locator("nav [aria-current]").bounding_box()
        assert link["x"] >= -1
        assert link["x"] + link["width"] <= width + 1
    assert found.page.evaluate("() => document.documentElement.scrollWidth") == width


@pytest.mark.slow("the page in a browser")
def test_a_talk_by_keyboard(opened):
    found = opened()
    page = found.page
    found.to("grid")
    page.wait_for_function(f"() => ({CURRENT})() === '#grid'")
    page.locator("#present").focus()
    page.keyboard.press("Enter")
    found.settle()
    assert page.evaluate(SHOWN) == ["grid"]
    assert page.evaluate("() => document.activeElement.id") == "grid"
    assert page.locator("header").bounding_box()["height"] <= 1  # its heading is still heard
    assert not page.locator("aside").is_visible()
    assert page.locator('[data-live="neighbors"]').is_visible()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(SHOWN) == ["exercises"]
    page.keyboard.press("PageDown")  # there is no section after the last
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowLeft")
    found.settle()
    assert page.evaluate(SHOWN) == ["decoder"]
    # A figure has the arrows for itself.
    page.locator('[data-name="mask"]').focus()
    page.keyboard.press("ArrowRight")
    assert found.text("pads").startswith("1 pad ")
    assert page.evaluate(SHOWN) == ["decoder"]
    page.keyboard.press("Escape")
    found.settle()
    assert page.evaluate(SHOWN) == SECTIONS
    assert found.complaints == []


@pytest.mark.slow("the page in a browser")
def test_letters_grow_and_notes_are_hidden(opened):
    found = opened("present=shift")
    page = found.page
    size = "() => parseFloat(getComputedStyle(document.querySelector('#shift h2')).fontSize)"
    large = page.evaluate(size)
    assert page.evaluate(SHOWN) == ["shift"]
    assert not page.locator("#shift .question").is_visible()
    page.get_by_role("button", name="Leave").click()
    assert page.locator("#shift .question").is_visible()
    assert large > 1.15 * page.evaluate(size)


@pytest.mark.slow("a page in a browser for each")
def test_a_link_brings_back_the_section_and_its_state(opened):
    found = opened("present=biases&biasKind=window&window=64&keys=100")
    assert found.page.evaluate(SHOWN) == ["biases"]
    assert found.text("kind").startswith("A window of 64 hides 36 keys")
    found.page.locator("#present-on").click()
    found.page.wait_for_function("() => location.hash.includes('present=decoder')")
    found.page.evaluate("() => { location.hash = '#present=nowhere' }")
    found.page.wait_for_function("() => document.querySelectorAll('section[hidden]').length === 0")
    assert found.complaints == []


@pytest.mark.slow("the page in a browser")
def test_every_field_of_a_link_is_restored(opened):
    """Of each field of the second half one value that is not its default."""
    state = (
        "scheme=rotary&rotaryPair=5&turnedPairs=6&rotaryFault=queries&method=yarn&biasKind=kerple"
        "&kerpleP=2&kerpleA=0.5&keys=700&decoderStep=9&pads=2&layout=packed&decoderFault=mask"
        "&gridKind=mixed&gridSize=10&gridHead=3&coordinates=stretched&patchRow=2&patchColumn=3"
    )
    found = opened(state)
    assert found.page.inner_text("#notices") == ""
    found.page.fill("#position", "11")
    found.page.wait_for_function("() => location.hash.includes('position=11')")
    written = set(found.page.evaluate("() => location.hash.slice(1)").split("&"))
    assert written == set(state.split("&")) | {"position=11"}
