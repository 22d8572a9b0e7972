"""The layers: each imports only from those before it, and the core loads nothing heavy."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.layers import Tree

import posenc

ROOT = Path(posenc.__file__).parent
LAYERS = [
    "_names",
    "_numbers",
    "arguments",
    "guards",
    "_rounding",
    "positions",
    "frequencies",
    "numerics",
    "kernels",
    "encodings",
    "backends",
    "distributed",
    "transformer",
    "recipes",
    "interop",
    "inspection",
    "plots",
    "testing",
    "audit",
    "lab",
    "explorer",
    "cli",
]
HEAVY = [
    "matplotlib",
    "transformers",
    "tokenizers",
    "safetensors",
    "rich",
    "tyro",
    "click",
    "triton",
    "http.server",
    "IPython",
]


def test_layers_import_only_from_those_before_them():
    tree = Tree(ROOT, LAYERS)
    assert len(tree.modules()) > 100  # the walk found them
    assert len(tree.face) > 40
    assert not list(tree.faults())


# The same reading of small trees, each with one fault.

SOUND = {
    "__init__.pyi": "from .low import Low\nfrom .high.tower import Tower",
    "low/__init__.py": "from whole.low.stone import Stone",
    "low/stone.py": "import math\nfrom whole import __version__\nclass Stone: pass",
    "high/__init__.py": "import lazy\nfrom whole.high.tower import Tower",
    "high/tower.py": "from whole import low\nfrom whole.low import Low",
    "top.py": "import whole\nfrom whole import Tower",
}
FAULTS = [
    ("low/stone.py", "from whole.high.tower import Tower", "low/stone.py imports high"),
    ("low/stone.py", "import whole.high.tower", "low/stone.py imports high"),
    ("low/stone.py", "import whole.high as above", "low/stone.py imports high"),
    ("low/stone.py", "from whole.high import Tower", "low/stone.py imports high"),
    ("low/stone.py", "from whole import high", "low/stone.py imports high"),
    ("low/stone.py", "from whole import Tower", "low/stone.py imports high"),
    ("low/stone.py", "from whole import Tower as Stone", "low/stone.py imports high"),
    ("low/stone.py", "import whole", "low/stone.py imports the whole package"),
    ("low/stone.py", "from whole import *", "low/stone.py imports the whole package"),
    ("low/stone.py", "from whole import unheard_of", "low/stone.py imports the whole package"),
    ("low/stone.py", "def late():\n    import whole.top", "low/stone.py imports top"),
    ("low/stone.py", "import_module('whole.high')", "low/stone.py imports high"),
    ("low/stone.py", "importlib.import_module('whole.high')", "low/stone.py imports high"),
    ("low/stone.py", "__import__('whole.high')", "low/stone.py imports high"),
    ("low/stone.py", "from ..high import Tower", "low/stone.py imports relatively"),
    ("low/stone.py", "from ..high import Tower", "low/stone.py imports high"),
    ("low/stone.py", "from . import other", "low/stone.py imports relatively"),
    ("low/__init__.pyi", "from ..high import Tower", "low/__init__.pyi imports high"),
    ("low/deep/__init__.pyi", "from ...high import Tower", "low/deep/__init__.pyi imports high"),
    ("elsewhere.py", "", "elsewhere.py stands in no layer"),
]


def planted(folder: Path, sources: dict[str, str]) -> Tree:
    for name, source in sources.items():
        path = folder / "whole" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return Tree(folder / "whole", ["low", "high", "top"])


def test_the_reading_finds_nothing_in_a_sound_tree(tmp_path):
    assert not list(planted(tmp_path, SOUND).faults())


@pytest.mark.parametrize(("name", "source", "fault"), FAULTS)
def test_the_reading_finds_a_planted_fault(tmp_path, name, source, fault):
    assert fault in list(planted(tmp_path, SOUND | {name: source}).faults())


# What is loaded.


def loaded(statement: str, *modules: str) -> list[str]:
    """Which of these modules a new process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*(m for m in {modules!r} if m in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "statement",
    [
        "import posenc",
        pytest.param(
            "import posenc\nfor n in set(posenc.__all__) - {'plots'}: getattr(posenc, n)",
            marks=pytest.mark.slow("loads every public name"),
        ),
        "import torch, posenc\nposenc.Rotary(8)(torch.ones(1, 1, 3, 8), torch.ones(1, 1, 3, 8))",
    ],
    ids=["import", "all names", "use"],
)
def test_the_core_loads_nothing_heavy(statement):
    assert loaded(statement, *HEAVY) == []


def test_what_is_loaded_is_seen():
    assert loaded("import http.server, rich", *HEAVY) == ["rich", "http.server"]


def test_help_does_not_load_torch():
    scripts = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, main = scripts["posenc"].partition(":")
    code = f"from {module} import {main}\ntry:\n    {main}(['--help'])\nexcept SystemExit: pass"
    assert loaded(code, "torch") == []
    assert loaded(f"{code}\nimport torch", "torch") == ["torch"]
