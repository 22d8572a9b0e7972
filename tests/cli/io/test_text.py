"""Reading text: lines, long lines, and what is no text."""

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.cli.errors import UserError
from posenc.cli.io import text as text_module
from posenc.cli.io.text import Piece, Text, open_text


def pieces(content: bytes) -> list[Piece]:
    return list(Text(io.BytesIO(content), "text").pieces())


def test_every_kind_of_line_end_ends_a_line():
    assert [p.text for p in pieces(b"one\ntwo\r\nthree\rfour")] == ["one", "two", "three", "four"]
    assert [p.line for p in pieces(b"one\n\nthree")] == [1, 2, 3]


def test_a_byte_order_mark_is_no_part_of_the_first_word():
    assert pieces(b"\xef\xbb\xbfone") == [Piece(1, "one")]


def test_text_reads_the_same_twice():
    text = Text(io.BytesIO(b"one\ntwo"), "text")
    assert list(text.pieces()) == list(text.pieces())


@pytest.mark.slow("megabytes of text")
@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"), max_size=60)))
def test_long_lines_come_in_pieces_and_nothing_is_lost(lines):
    before, text_module.PIECE = text_module.PIECE, 8
    try:
        found = pieces("\n".join(lines).removeprefix("\ufeff").encode())
    finally:
        text_module.PIECE = before
    joined: dict[int, str] = {}
    for piece in found:
        assert piece.continues == (piece.line in joined)
        assert len(piece.text) <= 5 * 8
        joined[piece.line] = joined.get(piece.line, "") + piece.text
    expected = "\n".join(lines).removeprefix("\ufeff").split("\n")
    assert [joined.get(n, "") for n in range(1, len(expected) + 1)] == expected


def test_a_long_line_is_cut_between_words(monkeypatch):
    monkeypatch.setattr(text_module, "PIECE", 8)
    found = pieces(" ".join(["lovely"] * 20).encode())
    assert len(found) > 5
    assert {word for piece in found for word in piece.text.split()} == {"lovely"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"caf\xe9", "not UTF-8 text: byte 0xe9 in line 1"),
        (b"\xff\xfeh\x00i\x00", "not UTF-8 text: byte 0xff in line 1"),
        (b"good\nbad\x00", "looks binary: line 2"),
        (b"one\ntwo caf\xe9 three\nfour\n", "byte 0xe9 in line 2"),
        (b"one\r\ntwo\r\nthr\xc3\x28\n", "byte 0xc3 in line 3"),
        (b"one\rtwo\r\n\xe4", "byte 0xe4 in line 3"),
        ("é\n".encode() * 90_000 + b"\xf8", "byte 0xf8 in line 90001"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(content, said):
    with pytest.raises(UserError, match=said):
        pieces(content)


@given(
    st.lists(st.sampled_from(["é", "ab", "\n", "\r\n", "\r", "你"]), max_size=40),
    st.integers(1, 9),
)
def test_the_line_of_a_bad_byte_is_the_one_that_editors_show(parts, block):
    text = "".join(parts)
    before, text_module.PIECE = text_module.PIECE, block
    try:
        with pytest.raises(UserError) as caught:
            pieces(text.encode() + b"\xff" + b"rest\nmore")
    finally:
        text_module.PIECE = before
    line = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert f"byte 0xff in line {line};" in str(caught.value)


def test_a_pipe_is_read_as_often_as_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo",))
    writer.start()
    with open_text(None, pipe) as text:
        assert [p.text for p in text.pieces()] == [p.text for p in text.pieces()] == ["one", "two"]
    writer.join()
