"""The page alone: from disk, in a notebook's frame, and served; no request, no complaint."""

import pytest
from tests.explorer.conftest import FIGURES, SECTIONS

from posenc.explorer import show


def test_from_disk_it_asks_for_nothing_and_complains_of_nothing(opened, address):
    found = opened()
    for section in SECTIONS:
        found.to(section)
    assert [each.split("#")[0] for each in found.requests] == [address]
    assert found.complaints == []


def test_every_figure_has_drawn_something(opened):
    found = opened()
    blank = found.page.evaluate(
        """() => [...document.querySelectorAll(".stage")].filter((stage) => {
            const canvas = stage.firstChild;
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return new Set(new Uint32Array(data.buffer)).size < 4;
        }).map((stage) => stage.dataset.name)"""
    )
    assert blank == []
    assert found.page.locator(".stage").count() == FIGURES >= 24


def test_its_policy_lets_nothing_out(opened):
    found = opened()
    refused = found.page.evaluate(
        """() => new Promise((resolve) => {
            addEventListener("securitypolicyviolation", (e) => resolve(e.effectiveDirective));
            fetch("https://example.org/").catch(() => {});
            setTimeout(() => resolve("nothing"), 3000);
        })"""
    )
    assert refused == "connect-src"


@pytest.mark.slow("a page in a browser for each")
def test_a_notebooks_frame_works_without_an_address(browser):
    page = browser.new_page(viewport={"width": 1000, "height": 950})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(show()._repr_html_())
    frame = page.frame_locator("iframe")
    live = frame.locator('[data-live="matrix"]')
    frame.locator("html[data-settled=true]").wait_for(state="attached")
    frame.locator("#panel summary").click()
    frame.locator("#position").fill("11")
    page.wait_for_timeout(400)  # the link would follow now, if there were one
    assert live.locator(".spoken").text_content() == "PE(11,0) = sin(11/10000^(0/128)) = −1.0000"
    assert complaints == []
    page.close()
