"""Text to numbers: rows of token ids, by a vocabulary trained on the text itself or one's own."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import rich.progress
from rich.console import Console
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from posenc.cli.errors import UserError

PADDING = ("[PAD]", "<pad>", "<PAD>", "<|pad|>", "<|padding|>")
UNKNOWN = ("[UNK]", "<unk>", "<UNK>", "<|unk|>")
TOGETHER = 256
"""Lines that are tokenized together."""

Text = Callable[[], TextIO]
"""Opens a text, as often as it is read."""


def text_from(text: str | None, file: Path | None) -> Text:
    """Words from the command line, a file, or standard input (-); what is no file is held."""
    if file is not None and file.is_file():
        shown: Any = {"console": Console(stderr=True), "transient": True}
        shown |= {"encoding": "utf-8-sig", "disable": not sys.stderr.isatty()}
        return partial(rich.progress.open, file, "r", **shown)  # type: ignore[arg-type]
    if "-" in (text, str(file)):
        held = sys.stdin.buffer.read()
    elif file is not None:
        held = file.read_bytes()
    elif text is not None:
        held = text.encode()
    else:
        raise UserError("no text: give TEXT, --file FILE, or - for standard input")
    return lambda: io.TextIOWrapper(io.BytesIO(held), "utf-8-sig")


def tokenizer_of(asked: Any, text: Text) -> Tokenizer:
    """That of ``--tokenizer`` or of the words of ``--vocabulary``; else one trained on the text."""
    if asked.vocabulary:
        return _word_level(_words_in(asked.vocabulary), asked.lowercase)
    if not asked.tokenizer:
        return trained(text, asked.vocabulary_size, asked.lowercase)
    content = asked.tokenizer.read_text("utf-8")
    try:
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # tokenizers raises bare exceptions
        raise UserError(f"{asked.tokenizer} is no tokenizer.json: {error}") from None
    tokenizer.no_padding()  # which the file may ask for
    tokenizer.no_truncation()
    return tokenizer


def trained(text: Text, size: int, lowercase: bool = False) -> Tokenizer:
    """A vocabulary of the ``size`` most frequent words and marks, behind padding and unknown."""
    special = [PADDING[0], UNKNOWN[0]]
    tokenizer = _word_level({name: number for number, name in enumerate(special)}, lowercase)
    given: Any = {"vocab_size": size + 2, "special_tokens": special, "show_progress": False}
    with text() as lines:
        tokenizer.train_from_iterator(lines, trainers.WordLevelTrainer(**given))
    return tokenizer


def _words_in(file: Path) -> dict[str, int]:
    """One's own words: one a line, of which the first has id 0; or JSON, a list or an object."""
    content = file.read_text("utf-8-sig").rstrip("\n")
    is_json = file.suffix == ".json"
    held = json.loads(content) if is_json else [word.strip() for word in content.split("\n")]
    words = held if isinstance(held, dict) else {word: row for row, word in enumerate(held)}
    if len(set(words.values())) != len(held):
        raise UserError(f"{file}: each token needs one line, and an id of its own")
    return words


def _word_level(words: dict[str, int], lowercase: bool) -> Tokenizer:
    unknown = next((name for name in UNKNOWN if name in words), None)
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    return tokenizer


def special(words: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The id of the first of ``names`` that the vocabulary has."""
    return next((words[name] for name in names if name in words), None)


class Row(NamedTuple):
    """The tokens of a line, or of a part of one that is too long, from position ``start`` on."""

    line: int
    start: int
    ids: list[int]


def rows(text: Text, tokenizer: Tokenizer, most: int) -> Iterator[Row]:
    """Rows in order; a line of more tokens continues in the next row, and goes on counting."""
    with text() as lines:
        numbered = enumerate(lines, 1)
        while together := list(islice(numbered, TOGETHER)):
            texts = [line.removesuffix("\n") for _, line in together]
            try:
                found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
            except Exception as error:  # tokenizers raises bare exceptions
                told = "a word is unknown, and the vocabulary has no [UNK]"
                raise UserError(f"{told}: {error}") from None
            for (line, _), encoding in zip(together, found, strict=True):
                for start in range(0, len(encoding), most):
                    yield Row(line, start, encoding.ids[start : start + most])
