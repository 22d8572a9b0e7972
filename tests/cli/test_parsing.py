"""Dataclasses as command lines: every kind of field, and what does not fit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from posenc.cli.errors import UserError
from posenc.cli.options import Argument, Option
from posenc.cli.parsing import close, parsed


@dataclass(frozen=True)
class Everything:
    """Try every kind of field.

    In more words.
    """

    place: Annotated[str, Argument("Where.", "PLACE")]
    other: Annotated[Path | None, Argument("Where else.", "OTHER")] = None
    count: Annotated[int, Option("How many.", "N")] = 3
    share: Annotated[float | None, Option("How much.", "X", shown="all, 100 %")] = None
    kind: Annotated[Literal["one", "two"], Option("Which.")] = "one"
    several: Annotated[tuple[int, ...], Option("Some.", "J")] = ()
    on_or_off: Annotated[bool, Option("Whether.")] = False
    output: Annotated[Path | None, Option("Out.", "FILE", short="-o")] = None


def given(*words: str) -> Everything | None:
    return parsed(Everything, "everything", words)


def test_defaults_are_the_dataclasses():
    assert given("here") == Everything("here")


def test_every_kind_is_read():
    words = "here there --count -4 --share 1e-3 --kind two --several 1 -2 3 --on-or-off -o f"
    assert given(*words.split()) == Everything(
        "here", Path("there"), -4, 1e-3, "two", (1, -2, 3), True, Path("f")
    )
    assert given("--count=7", "-") == Everything("-", count=7)


def test_help_says_everything(capsys):
    assert given("--help") is None
    said = " ".join(capsys.readouterr().out.split())
    for words in ("Try every kind of field. In more words.", "PLACE", "(default: 3)", "{one,two}",
                  "(default: all, 100 %)", "-o FILE"):  # fmt: skip
        assert words in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required: PLACE"),
        (("a", "--on-or-of"), "did you mean '--on-or-off'"),
        (("a", "--count", "1.5"), "'1.5' is no whole number"),
        (("a", "--count", "1", "--count=2"), "--count: it is given twice; give it once"),
        (("a", "--several", "1", "--several", "2"), "given twice; put all values behind one"),
        (("a", "--count", str(2**63)), "beyond 64 bits"),
        (("a", "b", "c"), "'c' is one word too many"),
        (("a", "--kind", "tow"), "did you mean 'two'?"),
        (("a", "--several"), "--several: expected at least one argument"),
        (("a", "--on-or-off=yes"), "--on-or-off"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(words, said):
    with pytest.raises(UserError, match="posenc everything --help") as caught:
        given(*words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_near_word_is_suggested():
    assert close("HEATMAP", ["heatmap", "walk"]) == "; did you mean 'heatmap'?"
    assert close("qqq", ["heatmap", "walk"]) == ""
