"""The page alone: from disk, in a notebook's frame, and served; no request, no complaint."""

from tests.explorer.conftest import FIGURES, SECTIONS


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
