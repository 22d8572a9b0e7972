"""Dark ground, calm motion, a narrow screen, a fine one."""

import pytest

pytestmark = pytest.mark.slow("the page in a browser")

GROUNDS = {"light": [255, 255, 255], "dark": [23, 24, 28]}
CORNER = """
() => Array.from(document.querySelector('[data-name="matrix"] canvas')
  .getContext("2d").getImageData(2, 2, 1, 1).data.slice(0, 3))
"""


@pytest.mark.parametrize("theme", GROUNDS)
def test_the_page_and_its_figures_follow_the_system(opened, theme):
    found = opened(color_scheme=theme)
    assert found.page.evaluate(CORNER) == GROUNDS[theme]
    body = found.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert body == f"rgb({', '.join(map(str, GROUNDS[theme]))})"


def test_the_reader_may_choose_otherwise(opened):
    found = opened(color_scheme="dark")
    found.page.select_option("#theme", "light")
    found.settle()
    assert found.page.evaluate(CORNER) == GROUNDS["light"]
    found.page.select_option("#theme", "")
    found.page.emulate_media(color_scheme="light")
    found.settle()
    assert found.page.evaluate(CORNER) == GROUNDS["light"]


def test_reduced_motion(opened):
    behavior = "() => getComputedStyle(document.documentElement).scrollBehavior"
    assert opened(reduced_motion="reduce").page.evaluate(behavior) == "auto"
    assert opened().page.evaluate(behavior) == "smooth"


@pytest.mark.parametrize("link", ["", "length=4096&dim=1024&base=10000000&position=4095"])
def test_one_column_at_360_pixels(opened, link):
    found = opened(link, viewport={"width": 360, "height": 740})
    wide = found.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide == 360
    lefts = found.page.evaluate(
        """() => [...document.querySelectorAll(".stage")].map((stage) => {
            const box = stage.getBoundingClientRect();
            return [Math.round(box.left), box.right <= 361, box.width > 280];
        })"""
    )
    assert {left for left, _, _ in lefts} == {lefts[0][0]}
    assert all(inside and wide for _, inside, wide in lefts)
    assert found.page.locator("#panel").get_attribute("open") is None
    found.page.locator("#panel summary").click()
    assert found.page.locator("#length").is_visible()
