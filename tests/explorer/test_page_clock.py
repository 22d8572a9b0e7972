"""Playing, with a clock that stands still until it is told."""

import pytest


@pytest.fixture
def played(opened):
    """Opens the page and stops its clock."""

    def open_(link: str = ""):
        found = opened(link, before=lambda page: page.clock.install(time=0))
        found.page.clock.pause_at(60_000)
        return found

    return open_


def after(found, milliseconds: int) -> int:
    found.page.clock.run_for(milliseconds)
    return int(found.page.input_value("#position"))


@pytest.mark.slow("a page in a browser for each")
def test_one_position_a_second_and_none_unasked(played):
    found = played()
    assert after(found, 5000) == 10
    found.page.click("#play")
    assert after(found, 990) == 10
    assert after(found, 30) == 11
    assert after(found, 3000) == 14
    found.page.click("#play")
    assert after(found, 5000) == 14


@pytest.mark.slow("the page in a browser")
def test_speed_and_the_way_round(played):
    found = played("speed=10&position=45")
    found.page.click("#play")
    assert after(found, 420) == 49
    assert after(found, 100) == 0
    found.page.fill("#speed", "0.25")
    assert after(found, 3900) == 0
    assert after(found, 200) == 1


def test_the_hands_stand_at_their_true_angles(played):
    found = played("speed=2")
    found.page.evaluate(
        "() => document.getElementById('clocks').scrollIntoView({ behavior: 'instant' })"
    )
    found.page.clock.run_for(500)
    found.page.click("#play")
    found.page.clock.run_for(1060)
    turns = found.page.locator('[data-live="clocks"]').inner_text()
    assert turns.startswith("At position 12 the fastest hand has made 1.91 turns")  # 12 / 2π


@pytest.mark.slow("the page in a browser")
def test_offsets_play_too_and_reset_stops(played):
    found = played()
    found.page.evaluate("() => document.querySelector('[data-play=shift]').click()")
    found.page.clock.run_for(2050)
    assert found.page.input_value("#offset") == "12"
    assert found.page.input_value("#position") == "10"
    found.page.click("#reset")
    found.page.clock.run_for(3000)
    assert found.page.input_value("#offset") == "10"
