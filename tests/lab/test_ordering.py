"""The proof that the lab sees what is published: orderings as paired gaps."""

from pathlib import Path

import pytest

from posenc.lab import Store, grid_from
from posenc.lab.comparison import compared
from posenc.lab.running import Runner

GRID = """
name = "flip-flop"
seeds = 3

[[tasks]]
task = "flip_flop"
steps = 300
tested = [24, 192]

[[encodings]]
name = "Rotary"
use = "Rotary({head_dim})"

[[encodings]]
name = "ALiBi"
use = "ALiBi({heads})"

[[gaps]]
task = "flip_flop"
better = "ALiBi"
worse = "Rotary"
least = 0.1
at = 8
"""


@pytest.mark.slow("trains six models: a minute on two idle cores")
def test_flip_flop_is_carried_on_by_alibi_and_not_by_rotary(tmp_path: Path):
    (tmp_path / "grid.toml").write_text(GRID)
    grid, store = grid_from(tmp_path / "grid.toml"), Store(tmp_path / "results")
    Runner(grid, store, workers=2).run()
    (task,) = compared(grid, store).tasks
    (gap,) = task.gaps
    assert len(gap.differences) == 3
    assert min(gap.differences.values()) >= gap.gap.least
    # Both have learned the task itself, so that the gap is one of length alone.
    for each in task.encodings.values():
        assert min(each.scores[24].values()) > 0.9, each.name
