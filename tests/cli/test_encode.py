"""``posenc encode``: what comes out is embedding plus encoding, in every format."""

import csv
import io
import json
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from posenc import Sinusoidal
from posenc.positions import consecutive
from posenc.transformer import TokenEmbedding

TEXT = "Hello world haha\nHow old are you\n\nHey you\n"
LENGTHS = [3, 4, 2]


@pytest.fixture
def text(tmp_path):
    """Three sentences of different lengths, with a blank line between."""
    file = tmp_path / "text.txt"
    file.write_text(TEXT)
    return file


def read_safetensors(file):
    with safe_open(file, framework="np") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118


def read_npz(file):
    with np.load(file) as opened:
        arrays = dict(opened)
    about = json.loads(str(arrays.pop("metadata")))
    return arrays, about


def words_of(about):
    vocabulary = about["vocabulary"]
    return json.loads(vocabulary) if isinstance(vocabulary, str) else vocabulary


@pytest.mark.parametrize(
    ("suffix", "read"), [(".safetensors", read_safetensors), (".npz", read_npz)]
)
def test_a_padded_file_holds_embedding_plus_encoding(run, text, tmp_path, suffix, read):
    out = tmp_path / f"out{suffix}"
    ran = run("encode", "--file", text, "--dim", 8, "--seed", 7, "--output", out)
    assert ran.status == 0, ran
    arrays, _ = read(out)
    assert arrays["encoded"].shape == (3, 4, 8)
    assert arrays["lengths"].tolist() == LENGTHS
    assert arrays["lines"].tolist() == [1, 2, 4]
    assert arrays["mask"].astype(bool).sum(1).tolist() == LENGTHS
    torch.manual_seed(7)
    embedding = TokenEmbedding(int(arrays["ids"].max()) + 1, 8, padding_index=0)
    wanted = Sinusoidal(8)(embedding(torch.tensor(arrays["ids"]).long())).detach().numpy()
    mask = arrays["mask"].astype(bool)
    np.testing.assert_array_equal(arrays["encoded"][mask], wanted[mask])
    assert (arrays["encoded"][~mask] == 0).all()
    assert (arrays["ids"][~mask] == 0).all()


def test_csv_and_json_hold_the_same_numbers_as_safetensors(run, text, tmp_path):
    files = {suffix: tmp_path / f"out{suffix}" for suffix in (".safetensors", ".csv", ".json")}
    for file in files.values():
        assert run("encode", "--file", text, "--dim", 4, "--output", file).status == 0
    arrays, _ = read_safetensors(files[".safetensors"])
    wanted = arrays["encoded"][arrays["mask"].astype(bool)]
    rows = list(csv.DictReader(io.StringIO(files[".csv"].read_text())))
    assert [row["token"] for row in rows] == TEXT.split()
    got = np.array([[row[f"dim_{j}"] for j in range(4)] for row in rows], dtype=np.float32)
    np.testing.assert_array_equal(got, wanted)
    sentences = json.loads(files[".json"].read_text())
    text_of = json.dumps(sentences)
    assert "haha" in text_of
    assert str(float(repr(wanted[0, 0].item())))[:6] in text_of


def test_the_same_seed_gives_the_same_file(run, text, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / f"{name}.safetensors"
        run("encode", "--file", text, "--dim", 8, "--seed", seed, "--output", out)
    a, b, c = ((tmp_path / f"{name}.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_batches_do_not_show_in_the_result(run, text, tmp_path):
    one, many = tmp_path / "one.npz", tmp_path / "many.npz"
    run("encode", "--file", text, "--dim", 8, "--batch-size", 1, "--output", one)
    run("encode", "--file", text, "--dim", 8, "--output", many)
    np.testing.assert_array_equal(read_npz(one)[0]["encoded"], read_npz(many)[0]["encoded"])


def test_own_embeddings_are_looked_up_by_the_own_vocabulary(run, tmp_path):
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "e.npy", vectors)
    save_file({"weight": vectors}, tmp_path / "e.safetensors")
    (tmp_path / "words.txt").write_text("the\ncat\nsat\n")
    (tmp_path / "words.json").write_text(json.dumps({"the": 0, "cat": 1, "sat": 2}))
    wanted = vectors[[1, 2]] + Sinusoidal(4).table(consecutive(2)).numpy()
    for embeddings in ("e.npy", "e.safetensors"):
        for words in ("words.txt", "words.json"):
            out = tmp_path / "out.safetensors"
            ran = run(
                *("encode", "cat sat", "--embeddings", tmp_path / embeddings),
                *("--vocabulary", tmp_path / words, "--output", out),
            )
            assert ran.status == 0, ran
            np.testing.assert_array_equal(read_safetensors(out)[0]["encoded"][0], wanted)


def test_any_tokenizer_json_serves(run, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 5, "sat": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    out = tmp_path / "out.npz"
    ran = run("encode", "cat sat dog", "--tokenizer", tmp_path / "tokenizer.json", "--output", out)
    assert ran.status == 0, ran
    assert read_npz(out)[0]["ids"].tolist() == [[5, 3, 0]]


def test_a_saved_tokenizer_gives_the_same_ids_again(run, text, tmp_path):
    first, again, saved = tmp_path / "1.npz", tmp_path / "2.npz", tmp_path / "tokenizer.json"
    run("encode", "--file", text, "--output", first, "--save-tokenizer", saved)
    run("encode", "--file", text, "--output", again, "--tokenizer", saved)
    np.testing.assert_array_equal(read_npz(first)[0]["ids"], read_npz(again)[0]["ids"])


def test_long_lines_continue_in_the_next_row_and_go_on_counting(run, tmp_path):
    (tmp_path / "words.txt").write_text("word\n")
    np.save(tmp_path / "e.npy", np.zeros((1, 4), dtype=np.float32))
    out = tmp_path / "out.npz"
    ran = run(
        *("encode", " ".join(["word"] * 10), "--max-length", 4, "--output", out),
        *("--vocabulary", tmp_path / "words.txt", "--embeddings", tmp_path / "e.npy"),
    )
    assert "continue in the next row" in ran.out
    arrays, _ = read_npz(out)
    assert arrays["lengths"].tolist() == [4, 4, 2]
    assert arrays["starts"].tolist() == [0, 4, 8]
    got = arrays["encoded"][arrays["mask"].astype(bool)]
    np.testing.assert_array_equal(got, Sinusoidal(4).table(consecutive(10)).numpy())


def test_standard_input_and_standard_output(run, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"your cat\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    ran = run("encode", "-", "--dim", 4, "--format", "csv")
    assert [row["token"] for row in csv.DictReader(io.StringIO(ran.out))] == ["your", "cat"]


def test_a_short_text_is_shown_as_embedding_plus_encoding(run):
    out = run("encode", "your cat", "--dim", 4).out
    assert "embedding" in out
    assert "+ encoding" in out
    assert "= sum" in out
    assert "seeded random vectors" in out


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_dtype_is_the_files(run, tmp_path, dtype):
    out = tmp_path / "out.safetensors"
    assert run("encode", "a b", "--dim", 4, "--dtype", dtype, "--output", out).status == 0
    with safe_open(out, framework="pt") as opened:
        assert opened.get_tensor("encoded").dtype == getattr(torch, dtype)


def test_scale_multiplies_the_embeddings_first(run, tmp_path):
    np.save(tmp_path / "e.npy", np.ones((1, 4), dtype=np.float32))
    (tmp_path / "w.txt").write_text("a\n")
    out = tmp_path / "out.npz"
    run(
        *("encode", "a", "--scale", "--output", out),
        *("--vocabulary", tmp_path / "w.txt", "--embeddings", tmp_path / "e.npy"),
    )
    assert read_npz(out)[0]["encoded"][0, 0].tolist() == [2.0, 3.0, 2.0, 3.0]


BAD = [
    (["encode"], "no text"),
    (["encode", "   "], "no text"),
    (["encode", "a", "--file", "text.txt"], "both TEXT and --file"),
    (["encode", "a", "--convention", "nothing"], "convention is 'nothing'"),
    (["encode", "a", "--dim", "0"], "dim"),
    (["encode", "a", "--dim", "5", "--convention", "concatenated"], "has no odd width"),
    (["encode", "--file", "missing.txt"], "missing.txt: No such file"),
    (["encode", "--file", "binary.bin"], "looks binary"),
    (["encode", "--file", "latin.txt"], "not UTF-8"),
    (["encode", "--file", "folder"], "is a folder"),
    (["encode", "--file", "empty.txt"], "no text"),
    (["encode", "a", "--output", "out.txt"], "must end in one of"),
    (["encode", "a", "--output", "nowhere/out.npz"], "there is no folder"),
    (["encode", "a", "--output", "folder.npz"], "is a folder"),
    (["encode", "a", "--embeddings", "e.npy"], "give --vocabulary"),
    (["encode", "a", "--embeddings", "e.npy", "--vocabulary", "w.txt", "--dim", "8"], "width 4"),
    (["encode", "a", "--embeddings", "e.npy", "--vocabulary", "long.txt"], "2 rows"),
    (
        ["encode", "a", "--embeddings", "flat.npy", "--vocabulary", "w.txt"],
        "expected [tokens, dim]",
    ),
    (["encode", "a", "--embeddings", "text.txt", "--vocabulary", "w.txt"], "takes .safetensors or"),
    (["encode", "a", "--tokenizer", "text.txt"], "is no tokenizer.json"),
    (["encode", "a", "--max-length", "0"], "--max-length is 0"),
    (["encode", "--file", "text.csv", "--output", "text.csv"], "is also the --file"),
]


@pytest.mark.parametrize(
    ("words", "said"), BAD, ids=[f"{i}-{said}" for i, (_, said) in enumerate(BAD)]
)
def test_bad_input_is_one_line_and_loses_nothing(refused, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    for name in ("text.txt", "text.csv"):
        (tmp_path / name).write_text(TEXT)
    (tmp_path / "binary.bin").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "w.txt").write_text("a\nb\n")
    (tmp_path / "long.txt").write_text("a\nb\nc\n")
    for folder in ("folder", "folder.npz"):
        (tmp_path / folder).mkdir()
    np.save(tmp_path / "e.npy", np.zeros((2, 4), dtype=np.float32))
    np.save(tmp_path / "flat.npy", np.zeros(4, dtype=np.float32))
    before = {path.name for path in tmp_path.iterdir()}
    assert said in refused(*words)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "text.csv").read_text() == TEXT


def test_two_outputs_cannot_be_one_file(refused, tmp_path):
    out = tmp_path / "o.csv"
    said = refused("encode", "a", "--output", out, "--save-tokenizer", out)
    assert "is also the --save-tokenizer" in said
    assert not out.exists()


def test_every_output_is_checked_before_the_work(refused, tmp_path):
    out, nowhere = tmp_path / "o.csv", tmp_path / "nowhere" / "t.json"
    assert "there is no folder" in refused(
        "encode", "a", "--output", out, "--save-tokenizer", nowhere
    )
    assert not out.exists()


def test_vectors_that_are_no_numbers_are_refused(refused, tmp_path):
    np.save(tmp_path / "e.npy", np.full((1, 4), np.nan, dtype=np.float32))
    (tmp_path / "w.txt").write_text("a\n")
    words = ["--vocabulary", tmp_path / "w.txt", "--embeddings", tmp_path / "e.npy"]
    assert "holds infinities or NaN" in refused("encode", "a", *words)


def test_a_number_beyond_64_bits_is_one_line(refused):
    assert "beyond 64 bits" in refused("encode", "a", "--seed", "9" * 30)
    assert "beyond 64 bits" in refused("explain", "--position", "9" * 30)
