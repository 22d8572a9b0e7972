"""JavaScript as tokens: enough to tell statements from what only looks like them.

Strings, templates, regular expressions and comments are taken as a whole, so that no word in them
is seen. Where a slash may be a division or begin a regular expression, the token before it decides,
as it does in the language, but that after a closing parenthesis it is taken for a division, and
after a brace, ``++`` or ``--`` refused.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "number", "string", "template", "regex", "sign"]


@dataclass(frozen=True)
class Token:
    """A piece of source that belongs together.

    Attributes:
        kind: What it is.
        text: As it stands.
        start: Where it begins.
        depth: How many parentheses, brackets and braces are open around it.
    """

    kind: Kind
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)+", re.S)
PIECES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("word", re.compile(r"#?[^\W\d][\w$]*|\$[\w$]*")),
    ("number", re.compile(r"0[xXbBoO][\da-fA-F_]+n?")),
    ("number", re.compile(r"(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?")),
    ("string", re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'", re.S)),
    ("sign", re.compile(r"\.\.\.|\?\.(?!\d)|=>|[-+*%&|^<>=!?~.,:;(){}\[\]@]")),
)  # fmt: skip
REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")

# Words after which a value begins, and with it a regular expression.
BEFORE_VALUE = frozenset(
    ["return", "typeof", "instanceof", "in", "of", "new", "delete", "void", "throw", "case", "do",
     "else", "yield", "await"]
)  # fmt: skip


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a module.

    Raises:
        ValueError: A string, template or comment does not end, brackets do not match, or a slash
            could mean two things.

    Example:
        >>> [token.text for token in tokens('a = /"/.test(`${b}`); // import')]
        ['a', '=', '/"/', '.', 'test', '(', '`${b}`', ')', ';']
    """
    place, open_, before = 0, [], None
    while True:
        blank = BLANK.match(text, place)
        place = blank.end() if blank else place
        if place == len(text):
            break
        token = _token(text, place, before, len(open_))
        if token.text in ("(", "[", "{"):
            open_.append(token)
        elif token.text in (")", "]", "}"):
            if not open_ or open_.pop().text + token.text not in ("()", "[]", "{}"):
                raise ValueError(f"{_line(text, place)} closes what is not open")
            token = Token(token.kind, token.text, token.start, len(open_))
        yield token
        before, place = token, token.end
    if open_:
        raise ValueError(f"{_line(text, open_[-1].start)} opens what is never closed")


def _token(text: str, place: int, before: Token | None, depth: int) -> Token:
    if text[place] == "`":
        return Token("template", text[place : _template_end(text, place)], place, depth)
    if text[place] == "/":
        return _slash(text, place, before, depth)
    for kind, pattern in PIECES:
        if match := pattern.match(text, place):
            return Token(kind, match[0], place, depth)
    raise ValueError(f"{_line(text, place)} cannot be read at {text[place : place + 12]!r}")


def _slash(text: str, place: int, before: Token | None, depth: int) -> Token:
    """A division, or a regular expression: what stands before tells."""
    if text.startswith("/*", place):
        raise ValueError(f"{_line(text, place)} begins a comment that does not end")
    if before is not None and (before.text == "}" or _twice(text, before)):
        raise ValueError(
            f"{_line(text, place)} has a slash after {before.text!r}, which may divide or begin a "
            "regular expression; put what is before it into a const, or the rest into parentheses"
        )
    value = before is not None and (
        before.kind in ("number", "string", "template", "regex")
        or before.text in (")", "]")
        or (before.kind == "word" and before.text not in BEFORE_VALUE)
    )
    if value:
        return Token("sign", "/", place, depth)
    if match := REGEX.match(text, place):
        return Token("regex", match[0], place, depth)
    raise ValueError(f"{_line(text, place)} begins a regular expression that does not end")


def _twice(text: str, before: Token) -> bool:
    """Whether the token is the second half of ``++`` or ``--``."""
    return before.text in ("+", "-") and text[before.start - 1 : before.start] == before.text


def _template_end(text: str, start: int) -> int:
    """Where a template ends; the expressions in it may hold templates."""
    place = start + 1
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text[place] == "`":
            return place + 1
        elif text.startswith("${", place):
            place = _expression_end(text, place + 2)
        else:
            place += 1
    raise ValueError(f"{_line(text, start)} begins a template that does not end")


def _expression_end(text: str, start: int) -> int:
    """Behind the brace that ends an expression of a template."""
    place, depth, before = start, 1, None
    while depth:
        blank = BLANK.match(text, place)
        place = blank.end() if blank else place
        if place >= len(text):
            raise ValueError(f"{_line(text, start)} begins a template that does not end")
        before = _token(text, place, before, depth)
        depth += {"{": 1, "}": -1}.get(before.text, 0)
        place = before.end
    return place


def end_of_statement(found: Sequence[Token], index: int) -> int:
    """The index behind the semicolon that ends the statement at ``index``, or behind all tokens.

    Example:
        >>> found = list(tokens("const f = () => { a; }; b;"))
        >>> found[end_of_statement(found, 0)].text
        'b'
    """
    for place in range(index, len(found)):
        if found[place].text == ";" and found[place].depth == found[index].depth:
            return place + 1
    return len(found)


def _line(text: str, place: int) -> str:
    return f"line {text.count(chr(10), 0, place) + 1}"
