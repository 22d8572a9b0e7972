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


def test_nothing_moves_unasked(opened):
    found = opened()
    before = found.text("matrix"), found.page.evaluate("() => location.hash")
    found.page.wait_for_timeout(1300)
    assert (found.text("matrix"), found.page.evaluate("() => location.hash")) == before


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


PHONE = {"width": 360, "height": 640}


def test_open_controls_fit_a_phone(opened):
    found = opened("dim=127&base=1&convention=tensor2tensor", viewport=PHONE)
    page = found.page
    page.locator("#panel summary").click()
    page.evaluate("() => document.querySelector('#matrix').scrollIntoView({behavior: 'instant'})")
    page.wait_for_timeout(100)
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#fields label, #fields input, #fields select, " +
            "#fields button, #panel summary")].map((each) => {
            const { left, right, top, bottom } = each.getBoundingClientRect();
            return [left, right, top, bottom];
        })"""
    )
    assert len(boxes) > 25
    for left, right, top, bottom in boxes:
        assert 0 <= left < right <= PHONE["width"]
        assert 0 <= top < bottom <= PHONE["height"]


def test_the_table_of_rotary_scores_fits_a_phone(opened):
    found = opened(viewport=PHONE)
    found.to("relatives")
    widths = found.page.evaluate(
        """() => {
            const region = document.querySelector('[data-live="scores"]');
            return [region.scrollWidth, region.clientWidth, region.offsetWidth];
        }"""
    )
    assert widths[0] <= widths[1] <= PHONE["width"]


def test_a_fine_screen_gets_a_fine_canvas(opened):
    found = opened(device_scale_factor=2)
    ratio = found.page.evaluate(
        """() => {
            const canvas = document.querySelector('[data-name="matrix"] canvas');
            return canvas.width / canvas.getBoundingClientRect().width;
        }"""
    )
    assert ratio == pytest.approx(2, abs=0.01)
