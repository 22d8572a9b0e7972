"""No sentence of what is written by hand has more than thirty words.

``python tests/docs/test_sentences.py`` lists those that do.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("models.md", "lab/standard.md", "lab/extension.md", "_build/", "reference/", "notebooks/")
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")),
    *(ROOT / "benchmarks/README.md", ROOT / "src/posenc/kernels/README.md"),
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not path.relative_to(ROOT / "docs").as_posix().startswith(MADE)
    ),
]
MOST = 30


def paragraphs(text: str) -> list[str]:
    """The prose of a page: no front matter, code, formulas or markup."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = re.sub(r"^ *(```+|\$\$).*?^ *\1", "", text, flags=re.S | re.M)
    text = re.sub(r"^\|(.*)\|$", lambda row: cells(row[1]), text, flags=re.M)
    text = re.sub(r"!\[([^]]*)\]\([^)]*\)", r"\n\n\1\n\n", text)  # what pictures show
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)  # links are what they say
    text = re.sub(r"^ *(?:[-*>]|\d+\.|:) +|^#+ ", "\n\n", text, flags=re.M)  # items, headings
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]


def cells(row: str) -> str:
    """The cells of a table, without names in code, which are listed there."""
    return "\n\n" + re.sub(r"`[^`]*`", "", row).replace("|", "\n\n") + "\n\n"


def long_sentences(text: str) -> list[str]:
    sentences = [
        each
        for part in paragraphs(text)
        for each in re.split(r"(?<=[.!?])[)*”\"]* +(?=[^a-z])", part)
    ]
    counted = [re.sub(r"`[^`]*`|\$[^$]*\$", "code", each) for each in sentences]
    words = [len(re.findall(r"\S*\w\S*", each)) for each in counted]
    return [f"{n}: {each}" for n, each in zip(words, sentences, strict=True) if n > MOST]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_are_short(page):
    assert long_sentences(page.read_text()) == []


def test_what_is_counted():
    thirty = " ".join(["word"] * 30)
    assert long_sentences(f"{thirty}. It is {thirty}.\n\n```\n{thirty} {thirty}\n```\n") == [
        f"32: It is {thirty}."
    ]
    assert long_sentences(f"- {thirty}\n- {thirty}\n\n| {thirty} | `{thirty}` |\n") == []


if __name__ == "__main__":
    for page in PAGES:
        for sentence in long_sentences(page.read_text()):
            print(f"{page.relative_to(ROOT)}: {sentence}\n")
