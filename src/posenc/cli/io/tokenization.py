"""Words to numbers: a vocabulary trained on the text itself, or the user's own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from posenc.cli.errors import UserError
from posenc.cli.io.text import Text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PADDING = ("[PAD]", "<pad>", "<PAD>", "<|pad|>", "<|padding|>")
UNKNOWN = ("[UNK]", "<unk>", "<UNK>", "<|unk|>")


def trained(text: Text, size: int, lowercase: bool) -> "Tokenizer":
    """A word-level vocabulary of the ``size`` most frequent words and marks of ``text``.

    Row 0 is the padding, row 1 stands for words that did not fit.
    """
    from tokenizers import trainers

    tokenizer = _word_level({UNKNOWN[0]: 1, PADDING[0]: 0}, UNKNOWN[0], lowercase)
    trainer = trainers.WordLevelTrainer(
        vocab_size=size + 2, special_tokens=[PADDING[0], UNKNOWN[0]], show_progress=False
    )
    tokenizer.train_from_iterator((piece.text for piece in text.pieces()), trainer)
    return tokenizer


def from_vocabulary(file: Path, lowercase: bool) -> "Tokenizer":
    """A word-level tokenizer over the user's own words.

    Args:
        file: One token a line, the first has id 0; or JSON, a list or an object of token to id.
            No odd space within a line moves the ids behind it; spaces around a token do not count.
        lowercase: Whether the text is lowercased before it is looked up.
    """
    words = _words(file)
    if not words:
        raise UserError(f"{file} holds no token; expected one token a line, or JSON")
    return _word_level(words, next((u for u in UNKNOWN if u in words), None), lowercase)


def from_file(file: Path) -> "Tokenizer":
    """Any ``tokenizer.json``, without the padding and the cutting that it may ask for."""
    from tokenizers import Tokenizer

    content = _read(file)
    try:
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # The tokenizers package raises bare exceptions of its own.
        raise UserError(f"{file} is no tokenizer.json: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def words_by_id(tokenizer: "Tokenizer") -> dict[str, int]:
    """Every token with its id, in the order of the ids."""
    return dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))


def special(words: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The id of the first of ``names`` that the vocabulary has."""
    return next((words[name] for name in names if name in words), None)


def _word_level(words: dict[str, int], unknown: str | None, lowercase: bool) -> "Tokenizer":
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    model = models.WordLevel(words, unk_token=unknown) if unknown else models.WordLevel(words)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()  # type: ignore[assignment]
    return tokenizer


def _words(file: Path) -> dict[str, int]:
    content = _read(file)
    if file.suffix != ".json":
        return _numbered(_lines(content, file), file)
    try:
        words = json.loads(content, object_pairs_hook=lambda pairs: _once(pairs, file))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{file} is not JSON: {error}") from None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return _numbered(words, file)
    if isinstance(words, dict) and all(type(n) is int and 0 <= n < 2**31 for n in words.values()):
        return _apart(words, file)
    raise UserError(f"{file}: expected a list of tokens, or an object of token to id from 0")


def _lines(content: str, file: Path) -> list[str]:
    """The tokens of a text; a line of spaces is a token of spaces."""
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if "" in lines:
        raise UserError(
            f"{file} has no token in line {lines.index('') + 1}; each line is one, and its number "
            f"is the id"
        )
    return [line.strip() or line for line in lines]


def _once(pairs: list[tuple[str, object]], file: Path) -> dict[str, object]:
    """An object of JSON, of which Python would keep the last of each name."""
    _numbered([word for word, _ in pairs], file)
    return dict(pairs)


def _apart(words: dict[str, int], file: Path) -> dict[str, int]:
    """Words with ids, no two the same."""
    of_id: dict[int, str] = {}
    for word, number in words.items():
        if number in of_id:
            raise UserError(
                f"{file} gives {of_id[number]!r} and {word!r} the id {number}; each token needs "
                f"one of its own"
            )
        of_id[number] = word
    return words


def _numbered(words: list[str], file: Path) -> dict[str, int]:
    numbered = {word: number for number, word in enumerate(words)}
    if len(numbered) != len(words):
        twice = next(word for number, word in enumerate(words) if numbered[word] != number)
        raise UserError(f"{file} lists {twice!r} twice; every token needs one id")
    return numbered


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")  # a byte order mark is no part of a word
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8 text") from None
