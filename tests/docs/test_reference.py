"""The reference says of each public name what its own lines say, not those of its type."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site is built where the extra `docs` is installed")

PATH = Path(__file__).parents[2] / "docs/_extensions/reference.py"


@pytest.fixture(scope="module")
def reference():
    specification = importlib.util.spec_from_file_location("reference", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_number_and_an_alias_say_what_they_are(reference):
    assert "the first token without a place" in reference.entry("posenc.positions", "NOWHERE")
    assert "What stands for positions" in reference.entry("posenc.positions", "Positions")
    for name in ("NOWHERE", "Positions", "Integers"):
        assert "auto" not in reference.entry("posenc.positions", name)
    with pytest.raises(ValueError, match="MARKS is public; put a string below it"):
        reference.said_of("posenc.plots.style", "MARKS")
