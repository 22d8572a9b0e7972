"""Grids and runs so small that a test waits for nothing."""

from pathlib import Path

import pytest

from posenc.lab import Configuration, ModelSize, Store, Training, grid_from
from posenc.lab.encodings import version

TINY = """
name = "tiny"
seeds = 2

[training]
steps = 4
batch = 2
examined = 4

[[models]]
dim = 8
heads = 2
depth = 2

[[tasks]]
task = "k_front"
trained = 4
tested = [4, 8]
k = 2

[[encodings]]
name = "NoPE"

[[encodings]]
name = "ALiBi"
use = "ALiBi({heads})"
"""


@pytest.fixture
def tiny(tmp_path: Path):
    """A grid of four runs; text may follow its own."""

    def tiny(more: str = "", *, text: str = TINY):
        path = tmp_path / "tiny.toml"
        path.write_text(text + more)
        return grid_from(path)

    return tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def configuration(use: tuple[str, ...] = ("ALiBi(2)",), *, seed: int = 0, steps: int = 4, **more):
    """A run of a few milliseconds."""
    return Configuration(
        task="k_front",
        task_version=1,
        options={"trained": 4, "tested": [4, 8], "k": 2},
        use=use,
        nope_layers=more.pop("nope_layers", ()),
        version=more.pop("version", version(use)),
        model=ModelSize(8, 2, 2),
        training=Training(steps=steps, batch=2, examined=4),
        seed=seed,
        **more,
    )
