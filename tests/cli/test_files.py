"""Files and folders appear whole or not at all."""

import os

import pytest

from posenc.cli.errors import UserError
from posenc.cli.files import check, placed, placed_folder


def test_a_file_takes_its_name_at_the_end(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    with placed(link) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


def test_a_folder_takes_its_name_at_the_end(tmp_path):
    with placed_folder(tmp_path / "out") as folder:
        (folder / "a").touch()
        assert not (tmp_path / "out").exists()
    assert os.listdir(tmp_path / "out") == ["a"]
    with pytest.raises(UserError, match="there already"), placed_folder(tmp_path / "out"):
        pass


@pytest.mark.parametrize("placing", [placed, placed_folder])
@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing(tmp_path, placing, error):
    with pytest.raises(type(error)), placing(tmp_path / "out"):
        raise error
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "said"), [("", "a folder"), ("no/out.csv", "no folder"), ("out.x", "must end")]
)
def test_what_cannot_be_written_is_refused(tmp_path, name, said):
    with pytest.raises(UserError, match=said):
        check(tmp_path / name, *([".csv"] if "." in name else []))
