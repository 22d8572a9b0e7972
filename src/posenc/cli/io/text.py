"""Text in, lines out, in bounded memory and as often as one likes."""

import codecs
import contextlib
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from posenc.cli.errors import UserError

# A line longer than this many characters is read in pieces, cut at white space.
PIECE = 1 << 16


@dataclass(frozen=True)
class Piece:
    """A line of text, or a part of a long one.

    Attributes:
        line: Number of the line, from 1, as editors count.
        text: Its characters, without the line end.
        continues: Whether the piece before belongs to the same line.
    """

    line: int
    text: str
    continues: bool = False


class Text:
    """Text that can be read from its beginning again and again.

    Args:
        stream: Seekable bytes.
        name: What messages call it.

    Attributes:
        watch: Is told now and then how many bytes have been read.
    """

    def __init__(self, stream: BinaryIO, name: str):
        self.stream = stream
        self.name = name
        self.size = stream.seek(0, io.SEEK_END)
        self.watch: Callable[[int], None] | None = None

    def pieces(self) -> Iterator[Piece]:
        """The lines in order, blank ones too.

        Example:
            >>> [p.text for p in Text(io.BytesIO(b"one two\\nthree"), "text").pieces()]
            ['one two', 'three']
        """
        self.stream.seek(0)
        reader = io.TextIOWrapper(self.stream, encoding="utf-8-sig")
        try:
            for count, piece in enumerate(_pieces(reader, self.name)):
                if self.watch is not None and count % 256 == 0:
                    self.watch(min(self.stream.tell(), self.size))
                yield piece
        except UnicodeDecodeError:
            raise UserError(_not_utf8(self.stream, self.name)) from None
        finally:
            with contextlib.suppress(ValueError):
                reader.detach()  # The wrapper would close the stream, which is read again.


def _pieces(reader: io.TextIOWrapper, name: str) -> Iterator[Piece]:
    line, rest, continues = 1, "", False
    while True:
        more = reader.readline(PIECE)
        if "\0" in more:
            raise UserError(f"{name} looks binary: line {line} holds a zero byte; give a text file")
        text, ended = rest + more.removesuffix("\n"), more.endswith("\n") or not more
        if not more and not rest:
            return
        if ended:
            yield Piece(line, text, continues)
            line, rest, continues = line + 1, "", False
            continue
        cut = _last_space(text)
        if cut or len(text) > 4 * PIECE:
            yield Piece(line, text[: cut or len(text)], continues)
            rest, continues = text[cut or len(text) :], True
        else:
            rest = text


def _not_utf8(stream: BinaryIO, name: str) -> str:
    """Says which byte is wrong, and in which line.

    Text is decoded many lines ahead, so the lines that were read say nothing about the place.
    """
    stream.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, after_return, byte = 1, False, None
    while byte is None:
        block = stream.read(PIECE)
        before = block
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            # What the decoder had kept of the block before stands in front of this one.
            before = block[: max(0, error.start - (len(error.object) - len(block)))]
            byte = error.object[error.start]
        line += before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
        line -= after_return and before.startswith(b"\n")
        after_return = before.endswith(b"\r")
        if not block:
            break
    return (
        f"{name} is not UTF-8 text: byte 0x{byte or 0:02x} in line {line}; "
        "convert it first, for example with iconv -t utf-8"
    )


def _last_space(text: str) -> int:
    """Where the last word of ``text`` begins, its space included; 0 without any space."""
    for index in range(len(text) - 1, 0, -1):
        if text[index].isspace():
            return index
    return 0


@contextlib.contextmanager
def open_text(text: str | None, file: Path | None) -> Iterator[Text]:
    """The text that the user means: words on the command line, a file, or standard input (-).

    Raises:
        UserError: Nothing is given, both are, or the file is no text that can be read.
    """
    if text is not None and file is not None:
        raise UserError("got both TEXT and --file; give one of them")
    with contextlib.ExitStack() as stack:
        if file is not None and str(file) != "-":
            yield Text(_seekable(stack.enter_context(_opened(file)), stack), str(file))
        elif text == "-" or file is not None:
            if sys.stdin is None:
                raise UserError("standard input is closed; give TEXT or --file FILE")
            yield Text(_spooled(sys.stdin.buffer, stack), "standard input")
        elif text is None:
            raise UserError("no text: give TEXT, --file FILE, or - for standard input")
        else:
            yield Text(io.BytesIO(_bytes(text)), "TEXT")


def _opened(file: Path) -> BinaryIO:
    if file.is_dir():
        raise UserError(f"{file} is a folder; give a text file")
    return file.open("rb")


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UserError("TEXT is not UTF-8; check the encoding of the terminal") from None


def _seekable(stream: BinaryIO, stack: contextlib.ExitStack) -> BinaryIO:
    regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    return stream if regular else _spooled(stream, stack)


def _spooled(stream: BinaryIO, stack: contextlib.ExitStack) -> BinaryIO:
    """A copy on disk of what can be read only once: the text is needed more than once."""
    copy = stack.enter_context(tempfile.TemporaryFile(prefix="posenc-"))  # noqa: SIM115 (the stack closes it)
    shutil.copyfileobj(stream, copy, 1 << 20)
    return copy  # type: ignore[return-value]
