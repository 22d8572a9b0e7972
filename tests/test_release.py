"""A version is one number, wherever it stands."""

import re
import tomllib
from pathlib import Path

import posenc

ROOT = Path(__file__).parent.parent
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CITATION = (ROOT / "CITATION.cff").read_text()
HEADINGS = re.findall(r"^## (\d+\.\d+\.\d+) — (\d{4}-\d\d-\d\d)$", CHANGELOG, flags=re.M)


def test_the_version_is_one_number():
    """What is cited is the newest release; the tree may be on its way to the next."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.+)$", CITATION, flags=re.M)[1]
    day = re.search(r"^date-released: (.+)$", CITATION, flags=re.M)[1]
    version, _, on_its_way = posenc.__version__.partition(".dev")
    assert posenc.__version__ == project["version"]
    assert (cited, day) == HEADINGS[0]
    assert f"## {version} — unreleased" in CHANGELOG if on_its_way else version == cited
