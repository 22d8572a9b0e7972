"""Lines of text to rows of token ids."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from posenc.cli.errors import UserError
from posenc.cli.io.text import PIECE, Piece, Text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Lines tokenized together; enough to keep the tokenizer busy, little to hold.
TOGETHER = 256

# Characters on either side of a cut in a long line of which the words are tokenized once more.
BESIDE = 256


@dataclass(frozen=True)
class Row:
    """A sentence, or a part of one that is too long for a single row.

    Attributes:
        line: Number of its line in the text, from 1.
        start: Position of its first token in that line.
        ids: Its tokens.
    """

    line: int
    start: int
    ids: list[int]


@dataclass
class Measure:
    """What one reading of the text tells before anything is written.

    Attributes:
        rows: Rows that the output will have.
        longest: Tokens of the longest row.
        tokens: Tokens in all.
        sentences: Lines that hold a token.
        unknown: Tokens that the vocabulary lacks.
    """

    rows: int = 0
    longest: int = 0
    tokens: int = 0
    sentences: int = 0
    unknown: int = 0

    @property
    def split(self) -> int:
        """Rows that continue the row before."""
        return self.rows - self.sentences


def rows(text: Text, tokenizer: "Tokenizer", max_length: int) -> Iterator[Row]:
    """The rows of ``text`` in order; a line above ``max_length`` tokens continues in a next row.

    The continuing row goes on counting positions, so that its tokens keep the encoding that they
    have in the whole line.
    """
    line, held, start = 0, [], 0
    for piece, ids in _tokenized(text.pieces(), tokenizer):
        if not piece.continues:
            if held:
                yield Row(line, start, held)
            line, held, start = piece.line, [], 0
        held = held + ids if held else ids
        while len(held) > max_length:
            yield Row(line, start, held[:max_length])
            held, start = held[max_length:], start + max_length
    if held:
        yield Row(line, start, held)


def _tokenized(
    pieces: Iterable[Piece], tokenizer: "Tokenizer"
) -> Iterator[tuple[Piece, list[int]]]:
    pieces, before = iter(pieces), ""
    while together := list(_some(pieces)):
        texts = [piece.text for piece in together]
        try:
            encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except Exception as error:  # The tokenizer raises bare exceptions of its own.
            raise UserError(
                f"the tokenizer cannot read lines {together[0].line} to {together[-1].line} "
                f"({error}); give a vocabulary with an unknown token such as [UNK]"
            ) from None
        for piece, encoding in zip(together, encodings, strict=True):
            if piece.continues:
                _check_cut(tokenizer, before, piece)
            before = re.sub(r"^\S+", "", piece.text[-BESIDE:]) or piece.text[-BESIDE:]
            yield piece, encoding.ids


def _check_cut(tokenizer: "Tokenizer", before: str, piece: Piece) -> None:
    """Refuses a long line whose pieces have other tokens than the whole.

    A tokenizer that begins each text with a space, as Llama's, would put one before each piece, and
    a cut within a word may part a token. Words that are cut off here are left out, since a
    vocabulary need not have parts of them.
    """
    after = re.sub(r"\S+$", "", piece.text[:BESIDE]) or piece.text[:BESIDE]
    whole, *apart = tokenizer.encode_batch_fast(
        [before + after, before, after], add_special_tokens=False
    )
    if whole.ids != [number for each in apart for number in each.ids]:
        raise UserError(
            f"line {piece.line} is longer than {PIECE:,} characters and read in pieces, and the "
            f"tokenizer makes other tokens of these than of the whole line; break the line"
        )


def _some(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """A few lines, fewer when they are long."""
    characters = 0
    for piece in islice(pieces, TOGETHER):
        yield piece
        characters += len(piece.text)
        if characters > 1 << 18:
            return


def measure(text: Text, tokenizer: "Tokenizer", max_length: int, unknown: int | None) -> Measure:
    """Counts what ``rows`` will give."""
    found = Measure()
    for row in rows(text, tokenizer, max_length):
        found.rows += 1
        found.tokens += len(row.ids)
        found.longest = max(found.longest, len(row.ids))
        found.sentences += row.start == 0
        found.unknown += row.ids.count(unknown) if unknown is not None else 0
    return found
