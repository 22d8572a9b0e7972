"""What the page does at an edge, with a link, on a dark ground and on a narrow screen."""

import pytest

pytestmark = pytest.mark.slow("the page in a browser")

BAD = [("length", "5000", "50"), ("dim", "7.5", "128"), ("base", "", "10000")]


def test_a_bad_number_is_put_back_with_words_at_the_field(opened):
    found = opened()
    before = found.text("matrix")
    for field, typed, kept in BAD:
        found.page.fill(f"#{field}", typed)
        found.page.press(f"#{field}", "Enter")
        assert f"Kept {kept}" in found.page.inner_text(f"#{field}-problem")
        assert found.page.input_value(f"#{field}") == kept
        assert found.text("matrix") == before
        found.page.fill(f"#{field}", kept)
        assert found.page.inner_text(f"#{field}-problem") == ""


def test_a_link_with_nonsense_is_read_as_far_as_it_goes(opened):
    found = opened("dim=64&length=many&color=red&convention=mine&pins=1.2.x&position=%E0%A4%A")
    notice = found.page.inner_text("#notices")
    for words in ("length: many is not", "color: no such field", "mine is no choice", "pins"):
        assert words in notice
    assert found.text("matrix") == "PE(10,0) = sin(10/10000^(0/64)) = −0.5440"
    assert found.complaints == []


def test_the_link_follows_the_state_and_the_page_the_link(opened):
    found = opened()
    found.page.fill("#dim", "64")
    found.page.wait_for_function("() => location.hash === '#dim=64'")
    found.page.evaluate("() => { location.hash = '#dim=32&position=4' }")
    found.page.wait_for_function("() => document.querySelector('#position').value === '4'")
    assert found.text("matrix").startswith("PE(4,0) = sin(4/10000^(0/32))")
    found.page.click('nav a[href="#shift"]')
    assert found.page.evaluate("() => document.activeElement.id") == "shift"
    assert found.page.input_value("#dim") == "32"
    found.page.click("#reset")
    found.page.wait_for_function("() => location.hash === ''")


def test_markup_in_a_sentence_stays_text(opened):
    found = opened()
    found.page.fill("#attended", "<img src=x onerror=alert(1)> cat")
    found.settle()
    assert found.page.locator("main img").count() == 0
    assert "img" in found.page.locator('[data-cell="on"]').inner_text()


GROUNDS = {"light": [255, 255, 255], "dark": [23, 24, 28]}


CORNER = """
() => Array.from(document.querySelector('[data-name="matrix"] canvas')
  .getContext("2d").getImageData(2, 2, 1, 1).data.slice(0, 3))
"""


@pytest.mark.parametrize("theme", GROUNDS)
def test_the_page_and_its_figures_follow_the_system_or_the_reader(opened, theme):
    found = opened(color_scheme=theme)
    assert found.page.evaluate(CORNER) == GROUNDS[theme]
    body = found.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert body == f"rgb({', '.join(map(str, GROUNDS[theme]))})"
    other = ({*GROUNDS} - {theme}).pop()
    found.page.select_option("#theme", other)
    found.settle()
    assert found.page.evaluate(CORNER) == GROUNDS[other]


@pytest.mark.parametrize("link", ["", "length=4096&dim=1024&base=10000000&position=4095"])
def test_one_column_at_360_pixels(opened, link):
    found = opened(link, viewport={"width": 360, "height": 740})
    wide = found.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide == 360
    boxes = [each.bounding_box() for each in found.page.locator(".stage").all()]
    assert len({round(box["x"]) for box in boxes}) == 1
    assert all(box["width"] > 280 and box["x"] + box["width"] <= 361 for box in boxes)
    assert found.page.locator("#panel").get_attribute("open") is None
    found.page.locator("#panel summary").click()
    assert found.page.locator("#length").is_visible()


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
