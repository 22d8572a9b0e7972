"""A command's dataclass as its command line: argparse, told by the fields.

Mistakes come out as one line that says what came, what was expected, and what may have been meant.
"""

import argparse
import difflib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from posenc.cli.errors import UserError
from posenc.cli.options import Argument, Option

Command = TypeVar("Command")

# What 64 bits hold: positions, seeds and sizes all end up there.
LEAST, MOST = -(2**63), 2**63 - 1


def parsed(command: type[Command], name: str, words: Sequence[str]) -> Command | None:
    """The filled-in dataclass; None once the help has been printed.

    Raises:
        UserError: The words do not fit; it names the option, and the way to the help.

    Example:
        >>> from dataclasses import dataclass
        >>> from posenc.cli.options import Length
        >>> @dataclass(frozen=True)
        ... class Count:
        ...     "Count."
        ...     length: Length = 3
        >>> parsed(Count, "count", ["--length", "5"])
        Count(length=5)
    """
    parser = _parser(command, name)
    try:
        given, left = parser.parse_known_args(list(words))
    except argparse.ArgumentError as error:
        raise UserError(_with_help(f"{error.argument_name}: {error.message}", name)) from None
    except SystemExit:
        return None
    if left:
        raise UserError(_with_help(_left_over(left[0], parser), name))
    values = vars(given)
    return command(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})


def close(word: str, known: Iterable[str]) -> str:
    """What may have been meant by ``word``, as the end of a sentence.

    Example:
        >>> close("tabel", ["table", "walk"]), close("xyz", ["table"])
        ("; did you mean 'table'?", '')
    """
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), list(by_lower), n=1)
    return f"; did you mean {by_lower[found[0]]!r}?" if found else ""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Says it in one line, where argparse would print the usage and leave."""
        raise UserError(_with_help(message, self.prog.split()[-1]))

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help; argparse would say nothing of a full disk."""
        (file or sys.stdout).write(message)


class _Once(argparse.Action):
    """Keeps a value, and refuses another one, of which the first would change nothing."""

    is_given = False

    def __call__(self, _parser: Any, namespace: Any, values: Any, _name: str | None = None) -> None:
        if self.is_given:
            how = "put all values behind one" if self.nargs == "+" else "give it once"
            raise argparse.ArgumentError(self, f"it is given twice; {how}")
        self.is_given = True
        setattr(namespace, self.dest, values)


def _parser(command: type, name: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"posenc {name}",
        description=inspect.cleandoc(command.__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        exit_on_error=False,
    )
    hints = get_type_hints(command, include_extras=True)
    for each in fields(command):
        hint, told = get_args(hints[each.name])
        if isinstance(told, Argument):
            _add_argument(parser, each, hint, told)
        else:
            _add_option(parser, each, hint, told)
    return parser


def _add_argument(parser: argparse.ArgumentParser, each: Field, hint: Any, told: Argument) -> None:
    required = each.default is MISSING
    parser.add_argument(
        each.name,
        nargs=None if required else "?",
        default=None if required else each.default,
        type=_reader(_kind(hint)[0]),
        metavar=told.metavar,
        help=_escaped(told.about),
    )


def _add_option(parser: argparse.ArgumentParser, each: Field, hint: Any, told: Option) -> None:
    names = [name for name in (told.short, "--" + each.name.replace("_", "-")) if name]
    kind, several = _kind(hint)
    if kind is bool:
        parser.add_argument(*names, action="store_true", help=_escaped(told.about))
        return
    shown = told.shown or ("" if each.default in (None, ()) else str(each.default))
    parser.add_argument(
        *names,
        action=_Once,
        dest=each.name,
        nargs="+" if several else None,
        default=each.default,
        type=_reader(kind, told.most),
        metavar=told.metavar or _choices(kind),
        help=_escaped(f"{told.about} (default: {shown})" if shown else told.about),
    )


def _kind(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether several may be given."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True
    return hint, False


def _reader(kind: Any, most: int | None = None) -> Callable[[str], Any]:
    if get_origin(kind) is Literal:
        return lambda word: _one_of(word, get_args(kind))
    if most is not None:
        return lambda word: _at_most(_whole(word), most)
    return {int: _whole, float: _number, Path: Path, str: str}[kind]


def _one_of(word: str, known: Sequence[str]) -> str:
    if word in known:
        return word
    listed = ", ".join(known)
    raise argparse.ArgumentTypeError(f"{word!r} is none of {listed}{close(word, known)}")


def _whole(word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number") from None
    if not LEAST <= value <= MOST:
        raise argparse.ArgumentTypeError(
            f"{word} is beyond 64 bits; give a whole number from -2^63 to 2^63 - 1"
        )
    return value


def _at_most(value: int, most: int) -> int:
    if value > most:
        raise argparse.ArgumentTypeError(f"{value} is more than {most}, which is the most here")
    return value


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is no number") from None


def _choices(kind: Any) -> str:
    return f"{{{','.join(get_args(kind))}}}" if get_origin(kind) is Literal else ""


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _left_over(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"{word!r} is one word too many; put a text of several words in quotes"
    name = word.split("=")[0]
    for action in parser._actions:  # what is a value of another option
        listed = str(action.metavar or "")
        if listed.startswith("{") and name.lstrip("-") in listed.strip("{}").split(","):
            meant = f"{action.option_strings[-1]} {name.lstrip('-')}"
            return f"{name!r} is no option of {parser.prog}; did you mean {meant!r}?"
    known = [flag for action in parser._actions for flag in action.option_strings]
    return f"{name!r} is no option of {parser.prog}{close(name, known)}"


def _with_help(message: str, name: str) -> str:
    return f"{message} (see posenc {name} --help)"
