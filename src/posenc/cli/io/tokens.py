"""Words to numbers: a vocabulary trained on the text itself, or one's own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from posenc.cli.errors import UserError
from posenc.cli.io.text import pieces

PADDING = ("[PAD]", "<pad>", "<PAD>", "<|pad|>", "<|padding|>")
UNKNOWN = ("[UNK]", "<unk>", "<UNK>", "<|unk|>")
TOGETHER = 256
"""Lines that are tokenized together."""


def trained(text: BinaryIO, size: int, lowercase: bool) -> Tokenizer:
    """A vocabulary of the ``size`` most frequent words and marks, behind padding and unknown."""
    special = [PADDING[0], UNKNOWN[0]]
    tokenizer = _word_level({name: number for number, name in enumerate(special)}, lowercase)
    trainer = trainers.WordLevelTrainer(
        vocab_size=size + 2, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator((each.text for each in pieces(text, "vocabulary")), trainer)
    return tokenizer


def from_vocabulary(file: Path, lowercase: bool) -> Tokenizer:
    """One's own words: one a line, of which the first has id 0; or JSON, a list or an object."""
    with file.open(encoding="utf-8-sig") as opened:
        content = opened.read()
    if file.suffix == ".json":
        held = json.loads(content)
    else:
        held = [line.strip() or line for line in content.rstrip("\n").split("\n")]
    ids = list(held.values()) if isinstance(held, dict) else list(range(len(held)))
    words = dict(zip(held, ids, strict=True))
    if not content.strip() or len(words) != len(held) or len(set(ids)) != len(ids):
        raise UserError(f"{file}: each token needs one line, and an id of its own")
    return _word_level(words, lowercase)


def from_file(file: Path) -> Tokenizer:
    """Any ``tokenizer.json``, without the padding and the cutting that it may ask for."""
    content = file.read_text("utf-8")
    try:
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # tokenizers raises bare exceptions
        raise UserError(f"{file} is no tokenizer.json: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _word_level(words: dict[str, int], lowercase: bool) -> Tokenizer:
    unknown = next((name for name in UNKNOWN if name in words), None)
    told = {} if unknown is None else {"unk_token": unknown}
    tokenizer = Tokenizer(models.WordLevel(words, **told))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    return tokenizer


def words_by_id(tokenizer: Tokenizer) -> dict[str, int]:
    """Every token with its id, in the order of the ids."""
    return dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))


def special(words: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The id of the first of ``names`` that the vocabulary has."""
    return next((words[name] for name in names if name in words), None)


class Row(NamedTuple):
    """The tokens of a line, or of a part of one that is too long, from position ``start`` on."""

    line: int
    start: int
    ids: list[int]


def rows(text: BinaryIO, tokenizer: Tokenizer, most: int, purpose: str) -> Iterator[Row]:
    """Rows in order; a line of more tokens continues in the next row, and goes on counting."""
    line, start, held = 0, 0, []
    read = pieces(text, purpose)
    while together := list(islice(read, TOGETHER)):
        texts = [piece.text for piece in together]
        try:
            found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except Exception as error:  # tokenizers raises bare exceptions
            told = "a word is unknown, and the vocabulary has no [UNK]"
            raise UserError(f"{told}: {error}") from None
        for piece, encoding in zip(together, found, strict=True):
            if not piece.continues:
                if held:
                    yield Row(line, start, held)
                line, start, held = piece.line, 0, []
            held = held + encoding.ids
            while len(held) > most:
                yield Row(line, start, held[:most])
                start, held = start + most, held[most:]
    if held:
        yield Row(line, start, held)


@dataclass
class Measure:
    """How many rows and tokens there are, tokens of the longest row, lines and unknown tokens."""

    rows: int = 0
    tokens: int = 0
    longest: int = 0
    sentences: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, read: Iterable[Row], unknown: int | None) -> "Measure":
        """What rows hold, where ``unknown`` is the id of words that the vocabulary lacks."""
        found = cls()
        for row in read:
            found.rows += 1
            found.tokens += len(row.ids)
            found.longest = max(found.longest, len(row.ids))
            found.sentences += row.start == 0
            found.unknown += row.ids.count(unknown) if unknown is not None else 0
        return found
