"""Encodings written as text, as ``"Rotary(64, base=5e5)"``: parsed, and never evaluated.

An expression is a call of a public encoding whose arguments are literals, or further calls:
schedules nest, as ``Rotary(YaRN(Geometric(128, base=500000), factor=16, trained_length=8192))``.
Nothing else is understood, so that a command line or a configuration can be trusted with it.
"""

import ast
import inspect
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Any

from posenc import frequencies
from posenc.encodings import graphs, queries_keys, remapping, scores, tokens
from posenc.encodings.base import (
    PositionRemapping,
    QueryKeyEncoding,
    ScoreEncoding,
    TokenEncoding,
)
from posenc.encodings.positional import Positional

Encoding = TokenEncoding | QueryKeyEncoding | ScoreEncoding | PositionRemapping | Positional

WIDEST = 1 << 20
"""The largest width, number of heads or of rows: larger ones are mistyped, and would take hours."""

SIZES = frozenset(
    ["dim", "heads", "head_dim", "frequencies", "hidden", "buckets", "max_len", "max_positions",
     "reach", "window", "size"]
)  # fmt: skip

LONGEST = 4000
"""Characters of an expression; far more than any that was meant."""

PREFIXES = ("posenc.frequencies.", "posenc.", "frequencies.")
"""What stands before a name in programs that people copy from."""

OTHER_NAMES = {
    "rope": "Rotary",
    "rotaryembedding": "Rotary",
    "rotaryembeddings": "Rotary",
    "t5": "T5Bias",
    "swin": "SwinBias",
    "swinv2": "SwinV2Bias",
    "sine": "Sinusoidal",
    "sincos": "Sinusoidal",
    "positionalencoding": "Sinusoidal",
    "embedding": "Learned",
    "absolute": "Learned",
}
"""Names under which encodings are known elsewhere, in lower case."""


def encoding_from(text: str) -> Encoding:
    """The encoding that ``text`` describes.

    Args:
        text: A call, as ``ALiBi(8)``. Arguments are numbers (``Fraction(3, 2)`` is one), strings,
            ``True``, ``False``, ``None``, tuples or lists of these, and calls of encodings and
            schedules; a schedule that depends on the length is resolved by ``.at(length)``.

    Raises:
        ValueError: The text is no such call, a name is not known, or its arguments do not fit; the
            message says what came, what is allowed, and what may have been meant.

    Example:
        >>> encoding_from("Rotary(Linear(Geometric(4, base=100), factor=2), pairing='interleaved')")
        Rotary(Linear(of=Geometric(dim=4, base=100), factor=2), pairing='interleaved')
        >>> encoding_from("Rotry(64)")
        Traceback (most recent call last):
        ValueError: 'Rotry' is no encoding; did you mean 'Rotary'?
    """
    made = _made(_parsed(text))
    if isinstance(made, Encoding):
        return made
    if hasattr(made, "radians") or hasattr(made, "at"):
        raise ValueError(
            f"{text} is a schedule of frequencies; give it to an encoding, as Rotary({text})."
        )
    if type(made).__name__ in names():
        raise ValueError(
            f"{_short(text)} is no encoding by itself; give it to one, as "
            f"RemappedRotary(8, Rotary(64), ReRoPE()) or AxialRotary(64, form=AxialForm(…))."
        )
    raise ValueError(f"{_short(text)} is no encoding; write a call, as Rotary(64) or ALiBi(8).")


@cache
def names() -> dict[str, type]:
    """Every name that an expression may call: the public encodings and schedules.

    Example:
        >>> names()["ALiBi"].__name__, "YaRN" in names(), "print" in names()
        ('ALiBi', True, False)
    """
    packages = (tokens, queries_keys, scores, remapping, frequencies)
    exported = {name: getattr(package, name) for package in packages for name in package.__all__}
    classes = {name: each for name, each in exported.items() if inspect.isclass(each)}
    concrete = {name: each for name, each in classes.items() if not inspect.isabstract(each)}
    return concrete | {"Positional": Positional}


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(
            f"The expression has {len(text)} characters; write it in {LONGEST} at most."
        )
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        raise ValueError(
            f"{_short(text)} cannot be read{place} ({error.msg}); write a call, as "
            f"Rotary(64, base=5e5)."
        ) from None
    except (RecursionError, MemoryError, ValueError):
        raise ValueError(
            f"{_short(text)} is nested too deeply, or holds a zero byte; write a call, as ALiBi(8)."
        ) from None


def _made(node: ast.expr) -> Any:
    """What a node stands for: a literal, or what a call makes."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float())):
            number = node.operand.value  # type: ignore[attr-defined]
            return -number if isinstance(node.op, ast.USub) else number
        case ast.Tuple():
            return tuple(_made(each) for each in node.elts)
        case ast.List():
            return [_made(each) for each in node.elts]
        case ast.Call(func=ast.Attribute(value=ast.Call() as schedule, attr="at")):
            return _called(_resolver(schedule), "at", node)
        case ast.Call(func=ast.Name("Fraction"), args=[_, _], keywords=[]):
            return _fraction(node)
        case ast.Call():
            return _called(_named(node.func), ast.unparse(node.func), node)
        case ast.Name() | ast.Attribute():
            made = _named(node)
            raise ValueError(f"{made.__name__} needs its arguments: {_signature(made)}.")
    raise ValueError(
        f"{ast.unparse(node)!r} is neither a literal nor a call of an encoding or schedule; "
        "nothing else is understood."
    )


def _fraction(node: ast.Call) -> Fraction:
    """A ratio of whole numbers, as schedules of a stated length write their factors."""
    above, below = (_made(each) for each in node.args)
    if type(above) is not int or type(below) is not int or not below:
        raise ValueError(f"{ast.unparse(node)!r} is no ratio of whole numbers, as Fraction(3, 2).")
    return Fraction(above, below)


def _resolver(node: ast.Call) -> Any:
    """The ``at`` of a schedule that depends on the length."""
    made = _made(node)
    if not hasattr(made, "at"):
        raise ValueError(f"{ast.unparse(node)!r} does not depend on a length; leave .at(…) out.")
    return made.at


def _named(node: ast.expr) -> type:
    name = ast.unparse(node)
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    known = names()
    if name in known:
        return known[name]
    if name in graphs.__all__:
        raise ValueError(
            f"{name!r} is no encoding of positions on a line but of nodes in a graph; call "
            f"posenc.{name} in a program."
        )
    meant = OTHER_NAMES.get(name.lower().replace("_", "")) or _close(name, list(known))
    advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(sorted(known))}."
    raise ValueError(f"{name!r} is no encoding; {advice}")


def _called(made: Any, name: str, node: ast.Call) -> Any:
    if any(isinstance(each, ast.Starred) for each in node.args) or None in {
        keyword.arg for keyword in node.keywords
    }:
        raise ValueError(f"{ast.unparse(node)!r} unpacks with *; write every argument out.")
    names = [keyword.arg for keyword in node.keywords]
    if twice := [each for each in names if names.count(each) > 1]:
        raise ValueError(f"{ast.unparse(node)!r} says {twice[0]} twice; say it once.")
    given = [_made(each) for each in node.args]
    named = {str(keyword.arg): _made(keyword.value) for keyword in node.keywords}
    parameters = inspect.signature(made).parameters
    for unknown in named.keys() - parameters.keys():
        meant = _close(unknown, list(parameters))
        advice = f"did you mean {meant!r}?" if meant else f"it takes {_signature(made)}."
        raise ValueError(f"{name} has no argument {unknown!r}; {advice}")
    try:
        bound = inspect.signature(made).bind(*given, **named).arguments
    except TypeError as error:
        raise ValueError(f"{ast.unparse(node)}: {error}; it takes {_signature(made)}.") from None
    for parameter, value in bound.items():
        if parameter in SIZES and isinstance(value, int) and value > WIDEST:
            raise ValueError(
                f"{ast.unparse(node)}: {parameter} is {value}; at most {WIDEST} is taken here."
            )
    try:
        return made(*given, **named)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"{ast.unparse(node)}: {error}") from error


def _short(text: str) -> str:
    """What was written, quoted, and cut where it is long."""
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


def _signature(made: Any) -> str:
    """The arguments without their types.

    Example:
        >>> from posenc.frequencies import Linear
        >>> _signature(Linear)
        'Linear(of, factor)'
    """
    signature = inspect.signature(made)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in
             signature.parameters.values()]  # fmt: skip
    bare = signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return f"{made.__name__}{bare}"


def _close(name: str, known: list[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.7)
    return by_lower[found[0]] if found else ""
