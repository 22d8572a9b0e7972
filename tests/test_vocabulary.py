"""One word for one thing: the terms of the field, American spelling, no names that say nothing."""

import subprocess
from pathlib import Path

import pytest
from tests import vocabulary
from tests.vocabulary import faults

ROOT = Path(__file__).parents[1]
READ = ["src", "tests", "benchmarks", "docs", ".ci", "*.md", "*.py", "pyproject.toml"]
MADE = {"CMakeFiles", "built"}  # what lies about where the kernels were built
THEMSELVES = {Path(vocabulary.__file__), Path(__file__)}


def files() -> list[Path]:
    """What git knows or would take up, without what lies about; all files where there is no git."""
    ask = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *READ]
    listed = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True)
    found = listed.stdout.splitlines() if listed.returncode == 0 else walked()
    return [ROOT / name for name in sorted(found) if (ROOT / name).is_file()]


def walked() -> list[str]:
    found = {path for pattern in READ for path in ROOT.glob(pattern)}
    inside = {each for path in found if path.is_dir() for each in path.rglob("*")}
    known = {".py", ".pyi", ".c", ".h", ".js", ".css", ".html", ".md", ".toml", ".json", ".txt"}
    named = {path.relative_to(ROOT) for path in found | inside if path.suffix in known}
    return [str(path) for path in named if not MADE.intersection(path.parts)]


def test_no_forbidden_word_stands_in_the_tree():
    found = list(faults(ROOT, set(files()) - THEMSELVES))
    assert not found, "\n" + "\n".join(found)


def test_all_of_it_is_read():
    endings = {path.suffix for path in files()}
    assert {".py", ".pyi", ".c", ".h", ".js", ".md", ".html", ".toml"} <= endings
    assert len(files()) > 300


PLANTED = [
    ("a.py", "def get_table(): ...", "a.py:1: get_table: say a noun"),
    ("a.py", "class Tables:\n    def compute_phases(self): ...", "a.py:2: compute_phases: say"),
    ("a.py", "class CacheManager: ...", "a.py:1: CacheManager: say what it does"),
    ("a.py", "def attention(route): ...", "a.py:1: route: say backend"),
    ("a.py", "best_route = 1", "a.py:1: best_route: say backend"),
    ("a.py", "self.waves = 1", "a.py:1: waves: say sin and cos"),
    ("a.py", "import torch.utils as utils", "a.py:1: utils: say what it does"),
    ("a.py", "for meeting in (): ...", "a.py:1: meeting: say specification"),
    ("a.py", "colour = 1", "a.py:1: colour: is British"),
    ("a.py", "def f():\n    '''Sum.\n\n    Normalised.'''", "a.py:4: Normalised: is British"),
    ("a.py", "x = 1  # the cheapest route", "a.py:1: route: say backend"),
    ("a.py", 'raise ValueError("no route")', "a.py:1: route: say backend"),
    ("a.py", "def test_every_route_is_taken(): ...", "a.py:1: test_every_route_is_taken: say"),
    ("a.pyi", "neighbours: int", "a.pyi:1: neighbours: is British"),
    ("utils.py", "", "utils.py: utils.py: say what it does"),
    ("routes/flex.py", "", "routes/flex.py: routes: say backends"),
    ("a.c", "struct waves *made;", "a.c:1: waves: say sin and cos"),
    ("a.h", "/* one\n   colour */", "a.h:2: colour: is British"),
    ("a.js", "const waveOf = (x) => x;", "a.js:1: waveOf: say sin and cos"),
    ("a.js", 'tell("a colour");', "a.js:1: colour: is British"),
    ("a.md", "Of all routes the cheapest.", "a.md:1: routes: say backends"),
    ("a.html", "<p>The behaviour of pairs</p>", "a.html:1: behaviour: is British"),
]


@pytest.mark.parametrize(("name", "source", "fault"), PLANTED)
def test_a_planted_word_is_found(tmp_path, name, source, fault):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert any(found.startswith(fault) for found in faults(tmp_path, [path]))


SOUND = [
    ("a.py", "from torch.utils import data\nconfig.get_text_config(compute_mode=1)"),
    ("a.py", "checkpoint = 1  # `torch.utils.checkpoint` and tests/routes/a.py are names"),
    ("test_a.py", "def test_a_wave_has_a_helper(): ..."),
    ("a.js", 'context.getImageData(); // "wave" in words'),
    ("a.c", '#include "stdio.h"\n/* a wave */ double realistic;'),
    ("a.md", "A precise, otherwise wise exercise; at the center of a realistic, linear promise."),
]


@pytest.mark.parametrize(("name", "source"), SOUND)
def test_a_sound_text_is_left_alone(tmp_path, name, source):
    (tmp_path / name).write_text(source)
    assert not list(faults(tmp_path, [tmp_path / name]))
