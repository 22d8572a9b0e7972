"""A short hunt in each subject that needs no other process."""

import pytest
from tests.fuzz.hunt import hunt


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("attention", 20),
        ("long", 5),
        ("packing", 5),
        ("images", 5),
        ("conversations", 2),
    ],
)
def test_a_short_hunt_finds_nothing(name, cases):
    hunt([name], cases, start=0)
