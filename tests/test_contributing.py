"""What the docs add to the tree, followed to the letter: it works there."""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from posenc.kernels.library import BUILT, built

ROOT = Path(__file__).parents[1]
STEP = re.compile(
    r"(?:(?P<new>New)|In) `(?P<path>[^`]+)`(?: below `(?P<below>[^`]+)`)?:\n\n"
    r"```\w+\n(?P<text>.*?)```",
    re.DOTALL,
)
PAGES = ("docs/own-encoding.md", "docs/adding.md")
ASKED = {
    "Into the library, in three files": (
        "logarithmic or Logarithmic or exports or every_public",
        "tests/encodings/scores/test_logarithmic.py tests/encodings/test_arguments.py",
        "src/posenc/encodings/scores/logarithmic.py tests/test_exports.py",
    ),
    "A schedule": (
        "halved or Halved or every_public",
        "tests/frequencies/test_halved.py src/posenc/frequencies/halved.py",
        "tests/encodings/test_arguments.py",
    ),
    "A command": ("period or help or longest", "tests/cli/commands/test_period.py",
                  "tests/cli/test_main.py"),
    "A backend": ("one_key or bad_arguments", "tests/backends/test_single.py",
                  "tests/backends/test_backends.py"),
    "A kernel": ("doubl or layers or bits or core", "tests/kernels/test_doubling.py",
                 "src/posenc/kernels/doubling tests/test_architecture.py"),
}  # fmt: skip
"""What of which files is about what was added; all of them are run with every change anyway."""


@dataclass(frozen=True)
class Step:
    """A file that is new, or lines below the first line that begins with ``below``."""

    path: str
    text: str
    below: str | None

    def take(self, root: Path) -> None:
        path = root / self.path
        if self.below is None:
            assert not path.exists(), f"{self.path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text)
            return
        lines = path.read_text().splitlines(keepends=True)
        starts = [index for index, line in enumerate(lines) if line.startswith(self.below)]
        assert starts, f"{self.path} has no line that begins with {self.below!r}"
        path.write_text("".join([*lines[: starts[0] + 1], self.text, *lines[starts[0] + 1 :]]))


def steps(title: str) -> list[Step]:
    """What one section asks for, in its order."""
    pages = "".join((ROOT / page).read_text() for page in PAGES)
    section = pages.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [
        Step(each["path"], each["text"], None if each["new"] else each["below"])
        for each in STEP.finditer(section)
    ]


def copied(to: Path) -> Path:
    """The tree without what is not needed to try it."""
    left_out = shutil.ignore_patterns("__pycache__", "CMakeFiles", "CMake*.txt.user", "*.ninja*")
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, to / name, ignore=left_out)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, to)
    return to


def python_of(root: Path) -> Path:
    """A Python to which the copy is what is installed, also for processes that tests start."""
    venv.create(root / "venv", symlinks=True)
    site = sysconfig.get_path("purelib", "venv", {"base": str(root / "venv")})
    paths = [str(root / "src"), str(root), *(path for path in sys.path if path)]
    (Path(site) / "copy.pth").write_text("\n".join(paths))
    return root / "venv/bin/python"


def tried(root: Path, *words: str) -> None:
    """pytest in the copy."""
    ran = subprocess.run(
        [python_of(root), "-m", "pytest", "-n0", "-x", "-p", "no:cacheprovider", *words],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout, ran.stdout


@pytest.mark.slow("the docs followed to the letter")
@pytest.mark.parametrize("title", ASKED)
def test_each_section_works_as_it_stands(tmp_path, title):
    root = copied(tmp_path / "tree")
    for step in steps(title):
        step.take(root)
    if title == "A kernel":
        if not built() or shutil.which("cmake") is None:
            pytest.skip("there is no C compiler, or no CMake")
        build(root / "src/posenc/kernels/csrc")
    words, *files = ASKED[title]
    tried(root, "-m", "not compiles and not slow", "-k", words, *" ".join(files).split())


def build(sources: Path) -> None:
    """``cmake --build``, in a folder that was configured."""
    for path in sources.glob("CMakeCache.txt"):
        path.unlink()
    for words in (["-S", sources, "-B", sources], ["--build", sources]):
        made = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
    assert (sources / "built" / f"kernels_{capability()}.so").exists()


def capability() -> str:
    """The library that torch's choice of instructions asks for."""
    name = torch.backends.cpu.get_cpu_capability().lower()
    return name if (BUILT / f"kernels_{name}.so").exists() else "default"
