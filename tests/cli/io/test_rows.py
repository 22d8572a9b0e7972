"""Rows of token ids: what is split, what is counted."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers

from posenc.cli.errors import UserError
from posenc.cli.io import tokenization
from posenc.cli.io.rows import measure, rows
from posenc.cli.io.text import Text

WORDS = st.lists(st.sampled_from(["your", "cat", "is", "a", "lovely"]), max_size=30)


@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(1, 12))
def test_rows_hold_every_token_once_at_its_position(lines, most):
    text = Text(io.BytesIO("\n".join(map(" ".join, lines)).encode()), "text")
    tokenizer = tokenization.trained(text, 100, lowercase=False)
    words = {number: word for word, number in tokenization.words_by_id(tokenizer).items()}
    found = list(rows(text, tokenizer, most))
    rebuilt: dict[int, list[str]] = {}
    for row in found:
        assert 1 <= len(row.ids) <= most
        held = rebuilt.setdefault(row.line, [])
        assert row.start == len(held)
        held.extend(words[number] for number in row.ids)
    assert rebuilt == {n: line for n, line in enumerate(lines, 1) if line}
    counted = measure(text, tokenizer, most, None)
    assert counted.rows == len(found)
    assert counted.tokens == sum(map(len, lines))
    assert counted.longest == max((len(row.ids) for row in found), default=0)
    assert counted.sentences == len(rebuilt)


def test_the_most_frequent_words_stay_and_the_rest_is_counted_as_unknown():
    text = Text(io.BytesIO(b"a a a b b c"), "text")
    tokenizer = tokenization.trained(text, 2, lowercase=False)
    assert tokenization.words_by_id(tokenizer) == {"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3}
    assert measure(text, tokenizer, 10, 1).unknown == 1


def test_lowercase_joins_words_that_differ_only_there():
    text = Text(io.BytesIO(b"The the THE"), "text")
    assert list(tokenization.words_by_id(tokenization.trained(text, 9, True))) == [
        *("[PAD]", "[UNK]", "the")
    ]
    assert len(tokenization.words_by_id(tokenization.trained(text, 9, False))) == 5


@pytest.mark.parametrize("begins_with_a_space", [False, True])
def test_a_long_line_has_the_tokens_of_the_whole_or_is_refused(begins_with_a_space):
    """As Llama's tokenizers, which put a space before each text, and so before each piece."""
    ids = {"?": 0, "▁": 1, "a": 2, "b": 3, "▁a": 4, "▁b": 5, "▁▁": 6}
    merges = [("▁", "a"), ("▁", "b"), ("▁", "▁")]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, unk_token="?"))
    spaces = [normalizers.Replace(" ", "▁")]
    before = [normalizers.Prepend("▁")] if begins_with_a_space else []
    tokenizer.normalizer = normalizers.Sequence([*before, *spaces])
    line = " ".join("ab" * 40_000)
    text = Text(io.BytesIO(line.encode()), "text")
    if begins_with_a_space:
        with pytest.raises(UserError, match="line 1 is longer than 65,536 characters"):
            list(rows(text, tokenizer, 512))
    else:
        found = [number for row in rows(text, tokenizer, 512) for number in row.ids]
        assert found == tokenizer.encode(line).ids


def test_a_long_word_is_not_cut_in_two():
    text = Text(io.BytesIO(b"a" * 400_000 + b" b"), "text")
    tokenizer = tokenization.trained(text, 10, lowercase=False)
    with pytest.raises(UserError, match="makes other tokens of these than of the whole line"):
        list(rows(text, tokenizer, 512))
