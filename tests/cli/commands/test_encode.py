"""``posenc encode``: what comes out is embedding plus encoding, in every format."""

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from posenc import Sinusoidal
from posenc.inspection.words import word_vectors
from posenc.positions import consecutive

TEXT = "Hello world haha\nHow old are you\n\nHey you\n"
LENGTHS = [3, 4, 2]


@pytest.fixture
def text(tmp_path):
    """Three sentences of different lengths, with a blank line between."""
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def read(file):
    """The arrays of a binary file, and its vocabulary."""
    if file.suffix == ".npz":
        arrays = dict(np.load(file))
        return arrays, json.loads(str(arrays.pop("metadata")))["vocabulary"]
    with safe_open(file, framework="np") as opened:
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return arrays, json.loads(opened.metadata()["vocabulary"])


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_rows_hold_embedding_plus_encoding(run, text, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    assert run("encode", "--file", text, "--dim", 8, "--seed", 7, "-o", out).status == 0
    flat, words = read(out)
    assert set(flat) == {"values", "ids", "positions", "offsets", "lines"}
    assert flat["offsets"].tolist() == [0, 3, 7, 9]
    assert flat["positions"].tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1]
    assert flat["lines"].tolist() == [1, 2, 4]
    assert flat["ids"].tolist() == [words[word] for word in TEXT.split()]
    x = word_vectors(TEXT.split(), 8, seed=7).float()
    wanted = (x + Sinusoidal(8).table(torch.from_numpy(flat["positions"]))).numpy()
    np.testing.assert_array_equal(flat["values"], wanted)
    # The same in a rectangle, whatever the size of batches.
    words = ("--seed", 7, "--pad", "--batch-size", 2)
    assert run("encode", "--file", text, "--dim", 8, "-o", out, *words).status == 0
    padded, _ = read(out)
    assert padded["values"].shape == (3, 4, 8)
    assert padded["lengths"].tolist() == LENGTHS
    mask = padded["mask"].astype(bool)
    assert mask.tolist() == [[place < length for place in range(4)] for length in LENGTHS]
    for name in ("values", "ids", "positions"):
        np.testing.assert_array_equal(padded[name][mask], flat[name])
        assert (padded[name][~mask] == 0).all()


def test_own_embeddings_are_looked_up_by_the_own_vocabulary(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save("e.npy", vectors)
    np.save("other.npy", vectors.astype(">f4"))
    save_file({"weight": vectors, "other": vectors}, "e.safetensors")
    Path("words.txt").write_bytes("the\r\ncat\r\nsat\r\n\r\n".encode("utf-8-sig"))
    Path("words.json").write_text(json.dumps({"the": 0, "cat": 1, "sat": 2}))
    wanted = vectors[[1, 2]] + Sinusoidal(4).table(consecutive(2)).numpy()
    for given in (["e.npy"], ["other.npy"], ["e.safetensors", "--tensor", "weight"]):
        for words in ("words.txt", "words.json"):
            line = ["cat sat", "--vocabulary", words, "--embeddings", *given]
            assert run("encode", *line, "-o", "out.npz").status == 0
            np.testing.assert_array_equal(read(Path("out.npz"))[0]["values"], wanted)


def test_a_tokenizer_is_saved_and_read_again(run, text, tmp_path):
    first, again, saved = tmp_path / "1.npz", tmp_path / "2.npz", tmp_path / "tokenizer.json"
    run("encode", "--file", text, "-o", first, "--save-tokenizer", saved)
    run("encode", "--file", text, "-o", again, "--tokenizer", saved)
    np.testing.assert_array_equal(read(first)[0]["ids"], read(again)[0]["ids"])


def test_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"your cat\n")))
    lines = run("encode", "-", "--dim", 4, "--format", "csv").out.splitlines()
    assert [line.split(",")[3] for line in lines] == ["token", "your", "cat"]


def test_the_preview_fits_and_adds_up(run):
    for dim, shown in ((2, 2), (8, 8), (9, 8)):
        out = run("encode", "your cat is a lovely cat", "--dim", dim).out
        assert max(map(len, out.splitlines())) <= 80
        numbers = np.array(re.findall(r"-?\d+\.\d{3}", out), dtype=float)
        x, table, total = numbers.reshape(3, 6, shown)
        np.testing.assert_allclose(x + table, total, atol=1.6e-3)
        assert ("8 of 9 dimensions" in out) is (shown < dim)


VECTORS = "a --vocabulary w.txt --embeddings"
BAD = {
    "": "no text",
    "--file missing.txt": "missing.txt: No such file",
    "--file latin.txt": "utf-8",
    "a -o o.npz --dtype bfloat16": "bfloat16",
    "a --embeddings e.npy": "give --vocabulary",
    f"{VECTORS} e.npy --dim 8": "holds [2, 4]",
    f"{VECTORS} short.npy": "holds [1, 4]",
    f"{VECTORS} large.npy --dtype float16 -o o.csv": "wider --dtype",
    "a --tokenizer w.txt": "is no tokenizer.json",
    "a --vocabulary twice.txt": "an id of its own",
    "c --vocabulary w.txt": "no [UNK]",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_loses_nothing(refused, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("text.csv").write_text(TEXT)
    Path("latin.txt").write_bytes(b"caf\xe9\n")
    Path("w.txt").write_text("a\nb\n")
    Path("twice.txt").write_text("a\n\n\nb\n")
    zeros = np.zeros((2, 4), dtype=np.float32)
    made = {"e": zeros, "short": zeros[:1], "large": zeros + 1e5}
    for name, array in made.items():
        np.save(f"{name}.npy", array)
    before = sorted(os.listdir())
    assert BAD[words] in refused("encode", *words.split())
    assert sorted(os.listdir()) == before


COMMAND = [sys.executable, "-m", "posenc", "encode"]


def large(path: Path, megabytes: float) -> Path:
    line = " ".join(f"word{number}" for number in range(30)) + "\n"
    path.write_text(line * int(megabytes * 1e6 / len(line)))
    return path


@pytest.mark.slow("memory measured in processes of their own")
def test_memory_does_not_grow_with_the_file(tmp_path):
    code = (
        "import resource, sys\nfrom posenc.cli.main import main\nassert not main(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    peaks, out = [], tmp_path / "out.csv"
    for megabytes in (0.5, 4.0):
        words = ["encode", "--file", str(large(tmp_path / "text", megabytes)), "-o", str(out)]
        ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        peaks.append(int(ran.stderr.split()[-1]) / 1024)
    written = out.stat().st_size / 1e6
    assert written > 300
    assert peaks[1] - peaks[0] < written / 4


def test_an_interrupted_run_leaves_what_was_there(tmp_path):
    words = ["--file", large(tmp_path / "text", 1), "-o", tmp_path / "out.csv"]
    (tmp_path / "out.csv").write_text("old")
    process = subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.PIPE)
    for _ in range(6000):
        with contextlib.suppress(FileNotFoundError):
            if any(part.stat().st_size for part in tmp_path.glob(".posenc-*")):
                break
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 143
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.csv", "text"]


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path, suffix):
    """The size limit of a process stands for the disk: both refuse a write half-way."""
    text, output = large(tmp_path / "text", 0.1), tmp_path / f"out.{suffix}"
    output.write_text("old")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    words = ["--file", str(text), "-o", str(output)]
    ran = subprocess.run([*COMMAND, *words], capture_output=True, text=True, preexec_fn=limited)
    assert ran.returncode == 2
    assert ran.stderr.startswith("posenc: ")
    assert ran.stderr.count("\n") == 1
    assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == [output.name, "text"]
