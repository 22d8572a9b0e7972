"""``posenc encode`` as a process: large files, bounded memory, interruptions, a full disk."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors import safe_open

COMMAND = [sys.executable, "-m", "posenc.cli.command_line", "encode"]
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
        "import resource, sys\nfrom posenc.cli.command_line import main\n"
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
    after = peak_memory(text_of(tmp_path / "large.txt", 3.0), large)
    written = (large.stat().st_size - small.stat().st_size) / 1e6
    assert written > 100
    assert after - before < written / 3
    with safe_open(large, framework="np") as opened:
        assert opened.get_slice("encoded").get_shape()[2] == 64


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interrupted_run_leaves_what_was_there(tmp_path, number, status):
    text = text_of(tmp_path / "text.txt", 4.0)
    output = tmp_path / "out.csv"
    output.write_text("old")
    words = ["--file", str(text), "--dim", "64", "--output", str(output)]
    process = subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(4.0)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert b"Traceback" not in said
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.csv", "text.txt"]


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path):
    """The size limit of a process stands for the disk: both refuse a write half-way."""
    text = text_of(tmp_path / "text.txt", 0.5)
    output = tmp_path / "out.safetensors"
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
    assert "nothing was written" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.safetensors", "text.txt"]
