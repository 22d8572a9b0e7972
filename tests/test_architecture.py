"""Importing posenc loads nothing heavy. Layers are held by import-linter; see pyproject.toml."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import posenc

ROOT = Path(posenc.__file__).parent
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


def test_one_encoding_loads_its_own_family():
    code = (
        "import sys\nfrom posenc import Rotary\nprint(sum(m[:6] == 'posenc' for m in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= 60


def test_help_does_not_load_torch():
    scripts = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, main = scripts["posenc"].partition(":")
    code = f"from {module} import {main}\ntry:\n    {main}(['--help'])\nexcept SystemExit: pass"
    assert loaded(code, "torch") == []
    assert loaded(f"{code}\nimport torch", "torch") == ["torch"]
