"""The results that lie beside the documentation, what its pages say of them, and why."""

import re
import runpy
from pathlib import Path

import pytest

from posenc.lab import grid_from
from posenc.lab.comparison import compared
from posenc.lab.kept import taken_out

DOCS = Path(__file__).parents[2] / "docs"
HERE = DOCS / "lab"
NAMES = ("standard", "extension")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    stores = {n: taken_out(HERE / f"{n}.json", tmp_path_factory.mktemp(n)) for n in NAMES}
    return {n: compared(grid_from(n, check=False), store) for n, store in stores.items()}


@pytest.mark.parametrize(
    ("task", "better", "bar"),
    [("flip_flop", "ALiBi", 0.2), ("flip_flop", "KERPLE", 0.2),
     ("local_language_model", "ALiBi", 0.25)],
)  # fmt: skip
def test_the_published_orderings_hold_as_paired_gaps(kept, task, better, bar):
    """By how much each leads rotary at eight times the trained length."""
    (found,) = (each for each in kept["standard"].tasks if each.title == task)
    pairs = {(pair.better, pair.worse): pair for pair in found.pairs[found.length]}
    assert pairs[better, "Rotary"].interval.low >= bar
    assert sum(each >= bar for each in pairs[better, "Rotary"].differences) >= 4


@pytest.mark.slow("all pages are written anew")
@pytest.mark.parametrize("name", NAMES)
def test_the_pages_are_what_the_results_say(kept, name, tmp_path):
    """Figures aside, which other fonts would draw with other pixels."""
    made = runpy.run_path(str(DOCS / "make_lab_results.py"))["page"](kept[name], tmp_path)
    # How many runs are of an earlier source changes with the source.
    both = [re.sub("- runs: .*", "", text) for text in (made, (HERE / f"{name}.md").read_text())]
    assert both[0] == both[1]
    assert all((HERE / path.name).exists() for path in tmp_path.glob(f"{name}-*.png"))
