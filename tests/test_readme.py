"""What README promises: two commands, a true tree, a picture that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_exactly_two_commands_set_everything_up():
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.S)
    commands = [line for block in blocks for line in block.splitlines() if "pip install" in line]
    assert len(commands) == 2
    assert all("-c constraints.txt" in command for command in commands)
    assert "posenc" in commands[0].split("&&")[-1]
    assert "pytest" in commands[1].split("&&")[-1]


@pytest.mark.parametrize(
    "folder", sorted(p.name for p in (ROOT / "src/posenc").iterdir() if p.is_dir())
)
def test_the_tree_names_every_folder(folder):
    if folder != "__pycache__":
        assert f"{folder}/" in README


def test_links_and_pictures_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README):
        path = next(filter(None, target))
        if not path.startswith("http"):
            assert (ROOT / path).exists(), path
