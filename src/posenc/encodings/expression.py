"""Encodings written as text, as ``"Rotary(64, base=5e5)"``: parsed, and never evaluated.

An expression is a call of a public encoding whose arguments are literals, or further calls:
schedules nest, as ``Rotary(YaRN(Geometric(128, base=500000), factor=16, trained_length=8192))``.
"""

import ast
import inspect
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Any

from posenc import frequencies
from posenc._names import TRIED
from posenc.encodings import queries_keys, remapping, scores, tokens
from posenc.encodings.base import PositionRemapping, QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.positional import Positional

Encoding = TokenEncoding | QueryKeyEncoding | ScoreEncoding | PositionRemapping | Positional

PREFIXES = ("posenc.frequencies.", "posenc.", "frequencies.")
"""What stands before a name in programs that people copy from."""


def encoding_from(text: str) -> Encoding:
    """The encoding that ``text`` describes.

    Args:
        text: A call, as ``ALiBi(8)``. Arguments are numbers (``Fraction(3, 2)`` is one), strings,
            ``True``, ``False``, ``None``, tuples or lists of these, and calls of encodings and
            schedules; a schedule that depends on the length is resolved by ``.at(length)``.

    Raises:
        ValueError: The text is no such call, a name is not known, or its arguments do not fit.

    Example:
        >>> encoding_from("Rotary(Linear(Geometric(4, base=100), factor=2), pairing='interleaved')")
        Rotary(Linear(of=Geometric(dim=4, base=100), factor=2), pairing='interleaved')
    """
    try:
        parsed = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text[:80]!r} cannot be read ({error}).") from None
    made = _made(parsed.body)
    if not isinstance(made, Encoding):
        raise ValueError(f"{text[:80]!r} is no encoding by itself.")
    return made


@cache
def names() -> dict[str, type]:
    """Every name that an expression may call: the public encodings and schedules."""
    packages = (tokens, queries_keys, scores, remapping, frequencies)
    exported = {name: getattr(package, name) for package in packages for name in package.__all__}
    classes = {name: each for name, each in exported.items() if inspect.isclass(each)}
    concrete = {name: each for name, each in classes.items() if not inspect.isabstract(each)}
    return concrete | {"Positional": Positional}


def _made(node: ast.expr) -> Any:
    """What a node stands for: a literal, or what a call makes."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.UnaryOp(ast.USub() | ast.UAdd() as sign, ast.Constant(int() | float() as number)):
            return -number if isinstance(sign, ast.USub) else number
        case ast.Tuple():
            return tuple(_made(each) for each in node.elts)
        case ast.List():
            return [_made(each) for each in node.elts]
        case ast.Call(func=ast.Attribute(value=ast.Call() as schedule, attr="at")):
            return _called(lambda *given: _made(schedule).at(*given), node)
        case ast.Call(func=ast.Name("Fraction")):
            return _called(Fraction, node)
        case ast.Call():
            return _called(_named(node.func), node)
    raise ValueError(f"{ast.unparse(node)!r} is neither a literal nor a call of an encoding.")


def _named(node: ast.expr) -> type:
    name, known = ast.unparse(node), names()
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    if name in known:
        return known[name]
    by_letters = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_letters, n=1, cutoff=0.7)
    meant = TRIED.get(name) or (by_letters[close[0]] if close else None)
    advice = f"; did you mean {meant!r}?" if meant else "."
    raise ValueError(f"{name!r} is no encoding{advice}")


def _called(made: Any, node: ast.Call) -> Any:
    given = [_made(each) for each in node.args]
    named = {str(each.arg): _made(each.value) for each in node.keywords}
    try:
        if len(named) < len(node.keywords):
            raise TypeError("an argument is repeated")
        return made(*given, **named)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{ast.unparse(node)}: {error}") from error
