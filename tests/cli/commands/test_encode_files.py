"""``posenc encode`` as a process: large files, bounded memory, interruptions, a full disk."""

import contextlib
import errno
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors import safe_open

from posenc.cli.io import disk

COMMAND = [sys.executable, "-m", "posenc.cli.main", "encode"]
ANOTHER_PROCESS = pytest.mark.slow("a process of its own for each signal and format")
WORDS = [f"word{number}" for number in range(500)]


def text_of(path: Path, megabytes: float) -> Path:
    """A text file of about so many megabytes, in lines of different lengths."""
    random.seed(0)
    lines = [" ".join(random.choices(WORDS, k=random.randint(2, 30))) for _ in range(500)]
    block = "\n".join(lines) + "\n"
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            file.write(block)
    return path


def peak_memory(file: Path, output: Path) -> int:
    """Peak memory in MB of one run over a whole file."""
    code = (
        "import resource, sys\nfrom posenc.cli.main import main\n"
        "status = main(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
        "sys.exit(status)"
    )
    words = ["encode", "--file", str(file), "--dim", "64", "--output", str(output)]
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stderr.split()[-1]) // 1024


@pytest.mark.slow("memory measured in processes of their own")
def test_memory_does_not_grow_with_the_file(tmp_path):
    small, large = tmp_path / "small.safetensors", tmp_path / "large.safetensors"
    before = peak_memory(text_of(tmp_path / "small.txt", 0.5), small)
    after = peak_memory(text_of(tmp_path / "large.txt", 4.0), large)
    written = (large.stat().st_size - small.stat().st_size) / 1e6
    assert written > 100
    assert after - before < written / 3
    with safe_open(large, framework="np") as opened:
        assert opened.get_slice("values").get_shape()[1] == 64


def interruptible() -> None:
    """SIGINT as a terminal gives it: whoever runs tests in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_writing(process: subprocess.Popen, folder: Path) -> None:
    """Waits until the command has written a part of a file in ``folder`` that has no name yet."""
    files = Path(f"/proc/{process.pid}/fd")
    for _ in range(3000):
        assert process.poll() is None, "the command ended before it could be interrupted"
        for file in files.iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(file).startswith(f"{folder}/#") and file.stat().st_size > 0:
                    return
        time.sleep(0.02)
    raise AssertionError("nothing was written in a minute")


@pytest.mark.skipif(
    not hasattr(os, "O_TMPFILE"), reason="what is written is seen in /proc of Linux"
)
@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, id="SIGINT"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM", marks=ANOTHER_PROCESS),
    ],
)
def test_an_interrupted_run_leaves_what_was_there(tmp_path, number, status):
    text = text_of(tmp_path / "text.txt", 1.0)
    output = tmp_path / "out.csv"
    output.write_text("old")
    process = subprocess.Popen(
        [*COMMAND, "--file", str(text), "--dim", "64", "--output", str(output)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=interruptible,
    )
    wait_for_writing(process, tmp_path)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert b"Traceback" not in said
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.csv", "text.txt"]


@pytest.mark.parametrize(
    "suffix",
    [
        ".npz",
        pytest.param(".safetensors", marks=ANOTHER_PROCESS),
        pytest.param(".csv", marks=ANOTHER_PROCESS),
    ],
)
def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path, suffix):
    """The size limit of a process stands for the disk: both refuse a write half-way."""
    text = text_of(tmp_path / "text.txt", 0.1)
    output = tmp_path / f"out{suffix}"
    output.write_text("old")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    ran = subprocess.run(
        [*COMMAND, "--file", str(text), "--dim", "64", "--output", str(output)],
        capture_output=True,
        text=True,
        preexec_fn=limited,
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("posenc: ")
    assert ran.stderr.count("\n") == 1
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == [output.name, "text.txt"]


@pytest.fixture
def room(monkeypatch):
    """Lets every disk have so many bytes left."""

    def room(free: int) -> None:
        usage = shutil.disk_usage(".")._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    return room


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".csv", ".json"])
def test_what_the_disk_cannot_hold_is_refused_before_the_work(refused, room, tmp_path, suffix):
    text, output = text_of(tmp_path / "text.txt", 0.1), tmp_path / f"out{suffix}"
    room(1_000_000)
    said = refused("encode", "--file", text, "--output", output)
    assert f"{output} would take" in said
    assert "its disk has 1.0 MB left" in said
    assert os.listdir(tmp_path) == ["text.txt"]


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".csv", ".json"])
@pytest.mark.parametrize("more", [(), ("--pad",)], ids=["ragged", "padded"])
def test_the_size_that_is_told_is_that_of_the_file(run, monkeypatch, tmp_path, suffix, more):
    if more and suffix in (".csv", ".json"):
        return  # has no padding, which is refused
    monkeypatch.setattr(disk, "LARGE", 0)
    text, output = text_of(tmp_path / "text.txt", 0.05), tmp_path / f"out{suffix}"
    ran = run("encode", "--file", text, "--dim", 16, "--output", output, *more)
    assert ran.status == 0, ran
    told, unit = re.findall(r"will take (?:about )?([\d.]+) (\wB)", ran.err)[0]
    told_bytes = float(told) * {"kB": 1e3, "MB": 1e6}[unit]
    near = 0.06 if suffix in (".safetensors", ".npz") else 0.15
    assert told_bytes == pytest.approx(output.stat().st_size, rel=near)
    assert ("% padding" in ran.err) is bool(more)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".json"])
def test_the_size_that_is_told_counts_the_vocabulary(run, monkeypatch, tmp_path, suffix):
    """Every token stands in the file too, and in npz each of its letters takes four bytes."""
    monkeypatch.setattr(disk, "LARGE", 0)
    words, output = tmp_path / "words.txt", tmp_path / f"out{suffix}"
    words.write_text("[UNK]\n" + "\n".join(f"word{n}" for n in range(20_000)))
    ran = run("encode", "word1 word2", "--vocabulary", words, "--dim", 4, "--output", output)
    told = re.findall(r"will take (about )?([\d.]+) (\wB)", ran.err)[0]
    size = output.stat().st_size
    assert float(told[1]) * {"kB": 1e3, "MB": 1e6}[told[2]] == pytest.approx(size, rel=0.05)
    assert bool(told[0]) is (suffix != ".safetensors")


def test_a_tokenizer_that_finds_no_room_keeps_the_vectors_back(refused, monkeypatch, tmp_path):
    """It was said that nothing was written, when the vectors had been."""
    output, saved = tmp_path / "out.csv", tmp_path / "words.json"
    output.write_text("before")

    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("posenc.cli.io.atomic._flush", full)
    said = refused("encode", "a b", "--output", output, "--save-tokenizer", saved)
    assert said.startswith(f"posenc: {saved}: No space left on device")
    assert output.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_small_file_is_written_without_a_word_before(run, tmp_path):
    assert run("encode", "a b c", "--output", tmp_path / "o.npz").err == ""


def test_one_long_line_does_not_make_the_others_long(run, tmp_path):
    text, output = tmp_path / "text.txt", tmp_path / "out.safetensors"
    text.write_text("one two\n" * 500 + "word " * 500 + "\n")
    assert run("encode", "--file", text, "--output", output).status == 0
    vectors = 1500 * 64 * 4
    assert vectors < output.stat().st_size < 1.1 * vectors + 50_000
