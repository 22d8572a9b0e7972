"""A file is whole or it is not there."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from posenc.cli.errors import UserError
from posenc.cli.io import atomic as atomic_module
from posenc.cli.io.atomic import atomic


@pytest.fixture(params=["unnamed", "named"])
def both_ways(request, monkeypatch):
    """With the files without a name that Linux has, and as elsewhere."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE")


@pytest.mark.usefixtures("both_ways")
def test_the_name_appears_at_the_end(tmp_path):
    target = tmp_path / "out"
    with atomic(target) as file:
        file.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError, ValueError])
def test_what_was_there_stays_when_the_writing_fails(tmp_path, end):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(end), atomic(target) as file:  # noqa: PT012 (the block is what fails)
        file.write(b"new")
        raise end
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("both_ways")
def test_the_mode_of_a_file_outlives_its_replacement(tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(0o640)
    with atomic(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_what_a_killed_process_of_the_same_number_left_is_not_in_the_way(tmp_path, monkeypatch):
    """In a container every process may have the same number."""
    names = ["taken", "taken", "free", "taken", "free"]
    monkeypatch.setattr(atomic_module.secrets, "token_hex", lambda _: names.pop(0))
    for number in (os.getpid(), "taken"):
        (tmp_path / f".posenc-{number}.part").write_bytes(b"left")
        (tmp_path / f".posenc-{number}-out").write_bytes(b"left")
    before = set(os.listdir(tmp_path))
    for unnamed in (True, False):
        if not unnamed:
            monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        with atomic(tmp_path / "out") as file:
            file.write(b"new")
        assert (tmp_path / "out").read_bytes() == b"new"
        assert set(os.listdir(tmp_path)) == before | {"out"}
    assert names == []


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(target)
    with atomic(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_killed_process_leaves_nothing(tmp_path):
    code = (
        "import sys, pathlib; from posenc.cli.io.atomic import atomic\n"
        f"with atomic(pathlib.Path({str(tmp_path / 'out')!r})) as file:\n"
        "    file.write(b'half'); file.flush(); print('writing', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert os.listdir(tmp_path) == []


def test_paths_that_no_file_can_take(tmp_path):
    for path, said in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "out", "there is no folder"),
        (os.devnull, "is no ordinary file"),
    ):
        with pytest.raises(UserError, match=said), atomic(atomic_module.Path(path)):
            raise AssertionError("nothing may be written")
