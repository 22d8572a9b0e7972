"""Text that is read several times, in bounded memory."""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rich.console import Console
from rich.progress import wrap_file

from posenc.cli.errors import UserError

LONGEST = 1 << 20
"""A line of more characters is read in pieces, cut at white space."""

SMALL = 1 << 16
"""A text of so many bytes is read before a bar could be."""


class Piece(NamedTuple):
    """A line of text, numbered from 1, or a part of a long one, which continues the one before."""

    line: int
    text: str
    continues: bool = False


def pieces(stream: BinaryIO, purpose: str = "reading") -> Iterator[Piece]:
    """The lines from the beginning, blank ones too, with a bar on a terminal.

    Example:
        >>> [piece.text for piece in pieces(io.BytesIO(b"one two\\nthree"))]
        ['one two', 'three']
    """
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    shown: Any = {"console": Console(stderr=True), "transient": True}
    shown["disable"] = size <= SMALL or not sys.stderr.isatty()
    with wrap_file(stream, size, description=purpose, **shown) as counted:
        reader = io.TextIOWrapper(counted, encoding="utf-8-sig")
        line, rest, continues = 1, "", False
        try:
            while more := reader.readline(LONGEST):
                rest += more
                if more.endswith("\n"):
                    yield Piece(line, rest[:-1], continues)
                    line, rest, continues = line + 1, "", False
                elif len(rest) >= LONGEST and (last := re.search(r"\s\S*$", rest)):
                    yield Piece(line, rest[: last.start()], continues)
                    rest, continues = rest[last.start() :], True
            if rest:
                yield Piece(line, rest, continues)
        except UnicodeDecodeError:
            raise UserError("the text is not UTF-8") from None
        finally:
            reader.detach()  # which would close the stream, to be read again


@contextlib.contextmanager
def open_text(text: str | None, file: Path | None) -> Iterator[BinaryIO]:
    """Words from the command line, a file, or standard input (-); what is no file is copied."""
    if text is not None and file is not None:
        raise UserError("got both TEXT and --file; give one of them")
    with contextlib.ExitStack() as stack:
        if "-" in (text, str(file)):
            if sys.stdin is None:
                raise UserError("standard input is closed; give TEXT or --file FILE")
            source = sys.stdin.buffer
        elif text is not None:
            source = io.BytesIO(text.encode())
        elif file is not None:
            source = stack.enter_context(file.open("rb"))
        else:
            raise UserError("no text: give TEXT, --file FILE, or - for standard input")
        if not source.seekable():
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(source, copy)
            source = copy
        yield source  # type: ignore[misc]
