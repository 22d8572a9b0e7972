"""The bar of contents that stays, and one section at a time for a room."""

import pytest
from tests.explorer.conftest import SECTIONS

CURRENT = "() => document.querySelector('nav [aria-current]')?.getAttribute('href')"
SHOWN = """
() => [...document.querySelectorAll("main > section")].filter((s) => !s.hidden).map((s) => s.id)
"""


def test_the_page_knows_its_own_sections(javascript):
    assert javascript(["state_defaults.SECTION_IDS"])[0] == SECTIONS


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
