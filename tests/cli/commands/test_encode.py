"""``posenc encode``: what comes out is embedding plus encoding, in every format."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest
import safetensors.torch
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


BINARY = [(".safetensors", read_safetensors), (".npz", read_npz)]


def wanted_vectors(ids, positions, *, dim: int, seed: int, words: int):
    """Embedding plus encoding of each token, worked out by the library's modules."""
    torch.manual_seed(seed)
    embedding = TokenEmbedding(words, dim, padding_idx=0)
    table = Sinusoidal(dim).table(torch.as_tensor(positions))
    return (embedding(torch.as_tensor(ids)) + table).detach().numpy()


@pytest.mark.parametrize(("suffix", "read"), BINARY)
def test_ragged_rows_hold_embedding_plus_encoding_and_no_padding(run, text, tmp_path, suffix, read):
    out = tmp_path / f"out{suffix}"
    ran = run("encode", "--file", text, "--dim", 8, "--seed", 7, "--output", out)
    assert ran.status == 0, ran
    arrays, about = read(out)
    assert set(arrays) == {"values", "ids", "positions", "offsets", "lines"}
    assert arrays["offsets"].tolist() == [0, 3, 7, 9]
    assert arrays["positions"].tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1]
    assert arrays["lines"].tolist() == [1, 2, 4]
    words = words_of(about)
    assert arrays["ids"].tolist() == [words[word] for word in TEXT.split()]
    wanted = wanted_vectors(arrays["ids"], arrays["positions"], dim=8, seed=7, words=len(words))
    np.testing.assert_array_equal(arrays["values"], wanted)


@pytest.mark.parametrize(("suffix", "read"), BINARY)
def test_padded_rows_hold_the_same_vectors_in_a_rectangle(run, text, tmp_path, suffix, read):
    ragged, padded = tmp_path / f"ragged{suffix}", tmp_path / f"padded{suffix}"
    for out, words in ((ragged, ()), (padded, ("--pad", "--batch-size", 2))):
        assert run("encode", "--file", text, "--dim", 8, "--output", out, *words).status == 0
    flat, (arrays, _) = read(ragged)[0], read(padded)
    assert arrays["values"].shape == (3, 4, 8)
    assert arrays["lengths"].tolist() == LENGTHS
    mask = arrays["mask"].astype(bool)
    assert mask.tolist() == [[place < length for place in range(4)] for length in LENGTHS]
    for name in ("values", "ids", "positions"):
        np.testing.assert_array_equal(arrays[name][mask], flat[name])
        assert (arrays[name][~mask] == 0).all()
    np.testing.assert_array_equal(arrays["lines"], flat["lines"])


@pytest.mark.parametrize(("suffix", "read"), BINARY)
def test_the_ids_of_padding_are_the_vocabularys(run, tmp_path, suffix, read):
    (tmp_path / "words.txt").write_text("a\nb\n[PAD]\n")
    (tmp_path / "text.txt").write_text("a\na b\n")
    out = tmp_path / f"out{suffix}"
    run(
        *("encode", "--file", tmp_path / "text.txt", "--vocabulary", tmp_path / "words.txt"),
        *("--pad", "--output", out),
    )
    assert read(out)[0]["ids"].tolist() == [[0, 2], [0, 1]]


def test_csv_and_json_hold_the_same_numbers_as_safetensors(run, text, tmp_path):
    files = {suffix: tmp_path / f"out{suffix}" for suffix in (".safetensors", ".csv", ".json")}
    for file in files.values():
        assert run("encode", "--file", text, "--dim", 4, "--output", file).status == 0
    arrays, _ = read_safetensors(files[".safetensors"])
    rows = list(csv.DictReader(io.StringIO(files[".csv"].read_text())))
    assert [row["token"] for row in rows] == TEXT.split()
    assert [int(row["position"]) for row in rows] == arrays["positions"].tolist()
    got = np.array([[row[f"dim_{j}"] for j in range(4)] for row in rows], dtype=np.float32)
    np.testing.assert_array_equal(got, arrays["values"])
    sentences = json.loads(files[".json"].read_text())["sentences"]
    assert [" ".join(each["tokens"]) for each in sentences] == [*TEXT.split("\n")[:2], "Hey you"]
    told = np.array([row for each in sentences for row in each["values"]], dtype=np.float32)
    np.testing.assert_array_equal(told, arrays["values"])


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
    for name, array in read_npz(one)[0].items():
        np.testing.assert_array_equal(array, read_npz(many)[0][name])


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
            np.testing.assert_array_equal(read_safetensors(out)[0]["values"], wanted)


def test_any_tokenizer_json_serves(run, tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "cat": 5, "sat": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    out = tmp_path / "out.npz"
    ran = run("encode", "cat sat dog", "--tokenizer", tmp_path / "tokenizer.json", "--output", out)
    assert ran.status == 0, ran
    assert read_npz(out)[0]["ids"].tolist() == [5, 3, 0]


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
    assert arrays["offsets"].tolist() == [0, 4, 8, 10]
    assert arrays["positions"].tolist() == list(range(10))
    np.testing.assert_array_equal(arrays["values"], Sinusoidal(4).table(consecutive(10)).numpy())


def test_standard_input_and_standard_output(run, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"your cat\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    ran = run("encode", "-", "--dim", 4, "--format", "csv")
    assert [row["token"] for row in csv.DictReader(io.StringIO(ran.out))] == ["your", "cat"]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "csv", "json"])
@pytest.mark.parametrize(("large", "dtype"), [(1e5, "float16"), (1e300, "float32")])
def test_sums_beyond_the_dtype_are_refused(run, refused, tmp_path, suffix, large, dtype):
    """Infinities would stand where the embeddings have numbers, and in JSON, which has none."""
    np.save(tmp_path / "e.npy", np.array([[1.0, 2.0], [large, -large]]))
    (tmp_path / "w.txt").write_text("your\ncat\n")
    out = tmp_path / f"out.{suffix}"
    given = ["encode", "your cat", "--output", out, "--vocabulary", tmp_path / "w.txt"]
    given += ["--embeddings", tmp_path / "e.npy"]
    said = refused(*given, "--dtype", dtype)
    assert f"numbers of lines 1 to 1 are beyond {dtype}" in said
    assert "give a wider --dtype" in said
    assert not out.exists()
    assert run(*given, "--dtype", "float64").status == 0


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("npz", "no .npy file of numbers: the magic string"),
        ("text", "no .npy file of numbers: the magic string"),
        ("empty", "no .npy file of numbers: EOF"),
        ("objects", "no .npy file of numbers: Array can't be memory-mapped: Python objects"),
        ("complex64", "holds complex64; expected floating-point numbers of 16 to 64 bits"),
        ("whole", "holds int64; expected floating-point numbers"),
    ],
)
def test_other_files_named_npy_are_told_from_it(refused, tmp_path, kind, told):
    """numpy opens archives, and speaks of pickles where it does not know a file."""
    file, words = tmp_path / "e.npy", tmp_path / "w.txt"
    words.write_text("[UNK]\nyour\ncat\n")
    with file.open("wb") as out:
        if kind == "npz":
            np.savez(out, e=np.ones((3, 4)))
        elif kind == "text":
            out.write(b"1.0, 2.0, 3.0\n")
        elif kind != "empty":
            dtype = {"objects": object, "whole": int}.get(kind, kind)
            np.save(out, np.ones((3, 4), dtype=dtype))
    said = refused("encode", "your cat", "--vocabulary", words, "--embeddings", file)
    assert str(file) in said
    assert told in said


def test_embeddings_of_the_other_byte_order_are_read(run, tmp_path):
    held, words = np.random.default_rng(0).normal(size=(3, 4)).astype("f4"), tmp_path / "w.txt"
    words.write_text("[UNK]\nyour\ncat\n")
    made = []
    for order in "<>":
        np.save(tmp_path / "e.npy", held.astype(f"{order}f4"))
        given = ("--vocabulary", words, "--embeddings", tmp_path / "e.npy", "--format", "json")
        made.append(run("encode", "your cat", *given).out)
    assert made[0] == made[1]


def test_a_folder_is_no_file_of_embeddings(refused, tmp_path):
    folder, words = tmp_path / "e.safetensors", tmp_path / "w.txt"
    folder.mkdir()
    words.write_text("[UNK]\nyour\n")
    said = refused("encode", "your", "--vocabulary", words, "--embeddings", folder)
    assert f"{folder} is a folder" in said


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float8_e4m3fn])
def test_quantized_embeddings_are_refused(refused, tmp_path, dtype):
    words, vectors = tmp_path / "words.txt", tmp_path / "vectors.safetensors"
    words.write_text("your\ncat\n")
    safetensors.torch.save_file({"weight": torch.ones(2, 8).to(dtype)}, vectors)
    said = refused("encode", "your cat", "--vocabulary", words, "--embeddings", vectors)
    assert f"holds {dtype}; expected floating-point numbers" in said


def test_a_short_text_is_shown_as_embedding_plus_encoding(run):
    out = run("encode", "your cat", "--dim", 4).out
    assert "embedding" in out
    assert "+ encoding" in out
    assert "= sum" in out
    assert "seeded random vectors" in out


def test_the_preview_fits_80_columns_and_adds_up(run):
    lines = run("encode", "your cat is a lovely cat", "--dim", 8).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:3] == ["position", "token", "id"]
    for line in lines[1:7]:
        numbers = np.array(re.findall(r"-?\d+\.\d{3}", line), dtype=float).reshape(3, 2)
        np.testing.assert_allclose(numbers[0] + numbers[1], numbers[2], atol=1.6e-3)
    assert "2 of 8 dimensions" in lines[-1]


def test_a_narrow_vector_is_shown_whole_and_lines_where_there_are_several(run, tmp_path):
    (tmp_path / "text.txt").write_text("a b\nc\n")
    lines = run("encode", "--file", tmp_path / "text.txt", "--dim", 2).out.splitlines()
    assert lines[0].split()[0] == "line"
    assert [line.split()[:2] for line in lines[1:4]] == [["1", "0"], ["1", "1"], ["2", "0"]]
    assert "…" not in "".join(lines)


def test_a_long_word_and_a_wide_script_leave_the_columns_in_place(run):
    lines = run("encode", "x" * 60 + " 你好", "--dim", 8).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].index("…") < 30


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_dtype_is_the_files(run, tmp_path, dtype):
    out = tmp_path / "out.safetensors"
    assert run("encode", "a b", "--dim", 4, "--dtype", dtype, "--output", out).status == 0
    with safe_open(out, framework="pt") as opened:
        assert opened.get_tensor("values").dtype == getattr(torch, dtype)


def test_scale_multiplies_the_embeddings_first(run, tmp_path):
    np.save(tmp_path / "e.npy", np.ones((1, 4), dtype=np.float32))
    (tmp_path / "w.txt").write_text("a\n")
    out = tmp_path / "out.npz"
    run(
        *("encode", "a", "--scale", "--output", out),
        *("--vocabulary", tmp_path / "w.txt", "--embeddings", tmp_path / "e.npy"),
    )
    assert read_npz(out)[0]["values"][0].tolist() == [2.0, 3.0, 2.0, 3.0]


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
    (["encode", "a", "--pad"], "--pad makes rectangles, which only .safetensors and .npz hold"),
    (["encode", "a", "--pad", "--output", "o.csv"], "--pad makes rectangles"),
    (["encode", "--file", "text.csv", "--output", "text.csv"], "is also the --file"),
    (["encode", "a", "--vocabulary", "w.txt", "--vocabulary-size", "9"], "--vocabulary-size is of"),
    (
        *(["encode", "a", "--vocabulary", "w.txt", "--embeddings", "e.npy", "--tensor", "w"],),
        "--tensor chooses one of .safetensors",
    ),
    (["encode", "a", "--tensor", "w"], "--tensor chooses one of .safetensors"),
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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("w.json", '{"[UNK]": 0, "a": 1, "b": 1}', "gives 'a' and 'b' the id 1"),
        ("w.json", '{"[UNK]": 0, "a": 1, "a": 2}', "lists 'a' twice"),
        ("w.txt", "[UNK]\n\na\nb\n", "no token in line 2"),
        ("w.txt", "[UNK]\r\n\r\na\r\nb\r\n", "no token in line 2"),
    ],
)
def test_no_token_has_the_id_of_another(refused, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content.encode())
    assert said in refused("encode", "a b", "--vocabulary", tmp_path / name)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_odd_spaces_move_no_id(run, tmp_path, ends):
    """Some count as ends of lines elsewhere, as the separator U+2028; and a mark may begin it."""
    words = ["[UNK]", "\u2028", "\x85", "a\x0b", "\u3000", "b"]
    (tmp_path / "w.txt").write_bytes((ends.join([*words, "", ""])).encode("utf-8-sig"))
    told = run("encode", "a b c", "--vocabulary", tmp_path / "w.txt", "--format", "json").out
    assert json.loads(told)["sentences"][0]["ids"] == [3, 5, 0]


def test_two_outputs_cannot_be_one_file(refused, tmp_path):
    out = tmp_path / "o.csv"
    said = refused("encode", "a", "--output", out, "--save-tokenizer", out)
    assert "is also the --save-tokenizer" in said
    assert not out.exists()


def test_neither_can_they_by_way_of_a_link(refused, tmp_path):
    out, link = tmp_path / "o.csv", tmp_path / "link.csv"
    link.symlink_to(out)  # to a file that is not there yet
    said = refused("encode", "a", "--output", out, "--save-tokenizer", link)
    assert "is also the --save-tokenizer" in said
    assert not out.exists()
    (tmp_path / "folder").mkdir()
    (tmp_path / "same").symlink_to(tmp_path / "folder")
    said = refused(
        *("encode", "a", "--output", tmp_path / "folder" / "o.csv"),
        *("--save-tokenizer", tmp_path / "same" / "o.csv"),
    )
    assert "is also the --save-tokenizer" in said


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
