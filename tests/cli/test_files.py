"""Files and folders appear whole or not at all."""

import os

import pytest

from posenc.cli.errors import UserError
from posenc.cli.files import placed, placed_folder


def test_a_file_takes_its_name_at_the_end(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    with placed(link) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


def test_a_folder_takes_its_name_at_the_end(tmp_path):
    with placed_folder(tmp_path / "out") as folder:
        (folder / "a").touch()
        assert not (tmp_path / "out").exists()
    assert os.listdir(tmp_path / "out") == ["a"]
    with pytest.raises(UserError, match="there already"), placed_folder(tmp_path / "out"):
        pass


@pytest.mark.parametrize("placing", [placed, placed_folder])
def test_what_fails_leaves_nothing(tmp_path, placing):
    with pytest.raises(KeyboardInterrupt), placing(tmp_path / "out"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
