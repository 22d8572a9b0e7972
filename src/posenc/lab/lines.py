"""Tables of a TOML file that know on which line each of their values stands."""

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

Place = tuple[str | int, ...]

HEADER = re.compile(r"\s*(?P<open>\[\[?)\s*(?P<name>[\w.\"-]+)\s*\]\]?\s*(#.*)?")
KEY = re.compile(r"\s*\"?(?P<name>[\w-]+)\"?\s*=")


class GridError(ValueError):
    """What is wrong with a grid, with its file and line."""


class Table:
    """One table of a file: values are taken by name, and what is left over is a mistake.

    Args:
        values: What the table holds.
        file: Its file, for messages.
        lines: The lines of all places of the file.
        place: Where in the file this table is.

    Example:
        >>> table = parsed("steps = 5", "a.toml")
        >>> table.take("steps", int)
        5
        >>> table.fail("steps", "too few")
        Traceback (most recent call last):
        posenc.lab.lines.GridError: a.toml, line 1: too few
    """

    def __init__(self, values: dict[str, Any], file: str, lines: dict[Place, int], place: Place):
        self.values, self.file, self.lines, self.place = values, file, lines, place
        self.asked: set[str] = set()

    def fail(self, name: str | None, said: object) -> NoReturn:
        """Refuses the value called ``name``, or the whole table."""
        place = self.place if name is None else (*self.place, name)
        while place and place not in self.lines:
            place = place[:-1]
        raise GridError(f"{self.file}, line {self.lines.get(place, 1)}: {said}") from None

    def take(self, name: str, kind: type, default: Any = ...) -> Any:
        """A value of a type; ``default`` where it is not there."""
        self.asked.add(name)
        if name not in self.values:
            if default is ...:
                self.fail(None, f"{name} is missing; write {name} = …")
            return default
        value = self.values[name]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.fail(name, f"{name} is {value!r}; it must be {WORDS[kind]}.")
        return value

    def several(self, name: str, kind: type, default: Any = ...) -> tuple:
        """A list of values of a type, or one alone."""
        self.asked.add(name)
        value = self.values.get(name, default)
        if value is ...:
            self.fail(None, f"{name} is missing; write {name} = …")
        listed = value if isinstance(value, list | tuple) else [value]
        if kind is float:
            listed = [float(each) if type(each) is int else each for each in listed]
        for each in listed:
            if not isinstance(each, kind) or isinstance(each, bool):
                self.fail(name, f"{name} holds {each!r}; it must hold {WORDS[kind]}.")
        return tuple(listed)

    def table(self, name: str) -> "Table":
        """A table within this one; an empty one where it is not there."""
        return Table(self.take(name, dict, {}), self.file, self.lines, (*self.place, name))

    def tables(self, name: str) -> Iterator["Table"]:
        """The tables of a list ``[[name]]``."""
        for index, values in enumerate(self.take(name, list, [])):
            if not isinstance(values, dict):
                self.fail(name, f"{name} holds {values!r}; write [[{name}]] for each.")
            yield Table(values, self.file, self.lines, (*self.place, name, index))

    def rest(self) -> dict[str, Any]:
        """All values that nobody has taken."""
        left = {name: value for name, value in self.values.items() if name not in self.asked}
        self.asked.update(left)
        return left

    def finish(self) -> None:
        """Refuses what nobody has taken."""
        for name in self.values:
            if name not in self.asked:
                near = difflib.get_close_matches(name, self.asked, n=1)
                known = ", ".join(sorted(self.asked))
                meant = f"did you mean {near[0]!r}?" if near else f"expected one of {known}."
                self.fail(name, f"{name!r} means nothing here; {meant}")


WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


def parsed(text: str, file: str) -> Table:
    """The table of a whole file.

    Raises:
        GridError: It is no TOML.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = found[1] if found else len(text.splitlines())
        raise GridError(f"{file}, line {line}: this is no TOML: {error}") from None
    return Table(values, file, _lines(text), ())


def read(path: Path) -> Table:
    """The table of a file.

    Raises:
        GridError: It is no TOML, or no text.
        OSError: It cannot be read.
    """
    try:
        return parsed(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise GridError(f"{path}, line 1: this is no text in UTF-8: {error}") from None


def _lines(text: str) -> dict[Place, int]:
    """The line on which each table begins, and each key of it.

    Example:
        >>> _lines("a = 1\\n[[b]]\\nc = 2")
        {('a',): 1, ('b',): 2, ('b', 0): 2, ('b', 0, 'c'): 3}
    """
    found: dict[Place, int] = {}
    counts: dict[str, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.fullmatch(line):
            name = header["name"].replace('"', "")
            found.setdefault((name,), number)
            table = (name,)
            if header["open"] == "[[":
                counts[name] = counts.get(name, -1) + 1
                table = (name, counts[name])
            found.setdefault(table, number)
        elif key := KEY.match(line):
            found.setdefault((*table, key["name"]), number)
    return found
