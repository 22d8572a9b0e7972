"""Text that is read several times, in bounded memory."""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import wrap_file

from posenc.cli.errors import UserError

LONGEST = 1 << 20
"""A line of more characters is read in pieces, cut at white space."""

SMALL = 1 << 16
"""A text of so many bytes is read before a bar could be."""


@dataclass(frozen=True)
class Piece:
    """A line of text without its end, or a part of a long one.

    Attributes:
        line: Number of the line, from 1.
        text: Its characters.
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
    """

    def __init__(self, stream: BinaryIO, name: str):
        self.stream, self.name = stream, name
        self.size = stream.seek(0, io.SEEK_END)

    def pieces(self, purpose: str = "reading") -> Iterator[Piece]:
        """The lines in order, blank ones too, with a bar on a terminal.

        Example:
            >>> [p.text for p in Text(io.BytesIO(b"one two\\nthree"), "text").pieces()]
            ['one two', 'three']
        """
        self.stream.seek(0)
        shown: Any = {"console": Console(stderr=True), "transient": True}
        shown["disable"] = self.size <= SMALL or not sys.stderr.isatty()
        with wrap_file(self.stream, self.size, description=purpose, **shown) as counted:
            reader = io.TextIOWrapper(counted, encoding="utf-8-sig")
            try:
                yield from _pieces(reader)
            except UnicodeDecodeError:
                raise UserError(f"{self.name} is not UTF-8 text") from None
            finally:
                reader.detach()  # which would close the stream, to be read again


def _pieces(reader: io.TextIOWrapper) -> Iterator[Piece]:
    line, rest, continues = 1, "", False
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


@contextlib.contextmanager
def open_text(text: str | None, file: Path | None) -> Iterator[Text]:
    """Words from the command line, a file, or standard input (-); what is no file is copied."""
    if text is not None and file is not None:
        raise UserError("got both TEXT and --file; give one of them")
    if text is None and file is None:
        raise UserError("no text: give TEXT, --file FILE, or - for standard input")
    with contextlib.ExitStack() as stack:
        name = "TEXT" if file is None else str(file)
        if "-" in (text, name):
            if sys.stdin is None:
                raise UserError("standard input is closed; give TEXT or --file FILE")
            source, name = sys.stdin.buffer, "standard input"
        elif text is not None:
            source = io.BytesIO(text.encode())
        else:
            source = stack.enter_context(Path(name).open("rb"))
        if not source.seekable():
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(source, copy)
            source = copy
        yield Text(source, name)  # type: ignore[arg-type]
