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
        return _numbered([line.strip() for line in content.splitlines() if line.strip()], file)
    try:
        words = json.loads(content)
    except json.JSONDecodeError as error:
        raise UserError(f"{file} is not JSON: {error}") from None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return _numbered(words, file)
    if isinstance(words, dict) and all(type(n) is int and 0 <= n < 2**31 for n in words.values()):
        return words
    raise UserError(f"{file}: expected a list of tokens, or an object of token to id from 0")


def _numbered(words: list[str], file: Path) -> dict[str, int]:
    numbered = {word: number for number, word in enumerate(words)}
    if len(numbered) != len(words):
        twice = next(word for number, word in enumerate(words) if numbered[word] != number)
        raise UserError(f"{file} lists {twice!r} twice; every token needs one id")
    return numbered


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8 text") from None
