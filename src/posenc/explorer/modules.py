"""ES modules to one script: each module becomes a function that returns what it exports.

The page opens from disk, where a browser lets no module import another, and its security policy
admits one script by its hash. So modules are joined in the order of their imports, by Python alone.

A module may say ``import { a, b as c } from "./x.js";`` before anything else, and ``export`` before
one const, function or class. Every other import or export is refused rather than guessed: default
exports, ``export *``, lists of exports, ``import()``, packages, several names in one const; and
``await`` outside of functions. Words in strings, templates, regular expressions and comments are no
statements.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath

from posenc.explorer.javascript import Token, end_of_statement, tokens

ALLOWED = (
    'write import { … } from "./…"; before anything else, or export before one const, function or '
    "class"
)


@dataclass(frozen=True)
class Import:
    """One import of a module.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends.
        names: What the other module calls each name, and what this one does.
        source: Where from, relative to this module.
    """

    start: int
    end: int
    names: tuple[tuple[str, str], ...]
    source: str


@dataclass(frozen=True)
class Module:
    """A module that has been read.

    Attributes:
        text: Its source.
        imports: Its imports, in order.
        exports: The name of each export, and where its word ``export`` stands.
    """

    text: str
    imports: tuple[Import, ...]
    exports: tuple[tuple[str, int], ...]


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what the module ``entry`` does.

    Args:
        entry: Path of a module, as ``main.js``.
        read: From a path to the text of that module.

    Raises:
        ValueError: An import or export of another form, a circle, a name that is not exported, or
            text that is no JavaScript.

    Example:
        >>> files = {
        ...     "main.js": 'import { two } from "./two.js";\\nconsole.log(two);\\n',
        ...     "two.js": "export const two = 2;\\n",
        ... }
        >>> print(joined("main.js", files.__getitem__))
        "use strict";
        // two.js
        const $two = (() => {
        const two = 2;
        return { two };
        })();
        // main.js
        const $main = (() => {
        const { two } = $two;
        console.log(two);
        return {  };
        })();
        <BLANKLINE>
    """
    exported: dict[str, set[str]] = {}
    named: dict[str, str] = {}
    parts = ['"use strict";\n']
    for path, module in _in_order(entry, read):
        other = named.setdefault(_name(path), path)
        if other != path:
            raise ValueError(f"{path} and {other} would bear one name; rename one of them.")
        exported[path] = {name for name, _ in module.exports}
        parts.append(_wrapped(path, module, exported))
    return "".join(parts)


def exports(text: str, path: str = "module") -> list[str]:
    """The names that a module exports.

    Example:
        >>> exports("export const a = 1;\\nconst b = 2;\\nexport function* c() {}\\n")
        ['a', 'c']
    """
    return [name for name, _ in _parsed(path, text).exports]


def _in_order(entry: str, read: Callable[[str], str]) -> Iterator[tuple[str, Module]]:
    """Paths and modules, each after those that it imports."""
    done: set[str] = set()

    def visit(path: str, above: tuple[str, ...]) -> Iterator[tuple[str, Module]]:
        if path in above:
            raise ValueError(f"{' → '.join((*above, path))} is a circle of imports; break it.")
        if path in done:
            return
        module = _parsed(path, read(path))
        for each in module.imports:
            yield from visit(_target(path, each.source), (*above, path))
        done.add(path)
        yield path, module

    yield from visit(entry, ())


def _parsed(path: str, text: str) -> Module:
    """The imports and exports of a module; other forms of them are refused."""
    try:
        found = list(tokens(text))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    imports, exported, index, begun, waits = [], [], 0, False, False
    while index < len(found):
        token = found[index]
        if not token.depth:
            waits = token.text == "async" or (waits and token.text != ";")
        if token.text == "await" and not token.depth and not waits:
            raise _refused(path, text, token)  # the function around a module does not wait
        if token.text == "import" and _is_keyword(found, index):
            if begun or token.depth:
                raise _refused(path, text, token)
            imported, index = _import(path, text, found, index)
            imports.append(imported)
            continue
        if token.text == "export" and _is_keyword(found, index):
            exported.append((_export(path, text, found, index), token.start))
        begun, index = True, index + 1
    return Module(text, tuple(imports), tuple(exported))


def _is_keyword(found: list[Token], index: int) -> bool:
    """Whether a word is the keyword, not a property (``x.import``) or a key (``{ import: 1 }``)."""
    if found[index].kind != "word" or (index and found[index - 1].text in (".", "?.")):
        return False
    key = index + 1 < len(found) and found[index + 1].text == ":"
    return not (key and found[index].depth)


def _import(path: str, text: str, found: list[Token], index: int) -> tuple[Import, int]:
    """``import { a, b as c } from "./x.js";``, word by word."""
    start, names = found[index], []
    place = _Place(path, text, found, index)
    place.take("{")
    while place.text != "}":
        name = local = place.word()
        if place.text == "as":
            place.next()
            local = place.word()
        names.append((name, local))
        if place.text != "}":
            place.take(",")
    place.take("}")
    place.take("from")
    source = place.string()
    end = place.take(";")
    if not source.startswith((("./"), ("../"))):
        raise _refused(path, text, start)
    return Import(start.start, end.end, tuple(names), source), place.index


class _Place:
    """A place among the tokens of a statement that must have one certain form."""

    def __init__(self, path: str, text: str, found: list[Token], index: int):
        self.path, self.source, self.found, self.begin, self.index = path, text, found, index, index
        self.next()

    @property
    def text(self) -> str:
        return self.found[self.index].text if self.index < len(self.found) else ""

    def next(self) -> Token:
        self.index += 1
        return self.found[self.index - 1]

    def take(self, wanted: str) -> Token:
        if self.text != wanted:
            raise _refused(self.path, self.source, self.found[self.begin])
        return self.next()

    def word(self) -> str:
        if self.index >= len(self.found) or self.found[self.index].kind != "word":
            raise _refused(self.path, self.source, self.found[self.begin])
        return self.next().text

    def string(self) -> str:
        if self.index >= len(self.found) or self.found[self.index].kind != "string":
            raise _refused(self.path, self.source, self.found[self.begin])
        return self.next().text[1:-1]


def _export(path: str, text: str, found: list[Token], index: int) -> str:
    """The one name that a statement exports."""
    token, words = found[index], [each.text for each in found[index + 1 : index + 5]]
    if token.depth:
        raise _refused(path, text, token)
    if words[:1] == ["const"]:
        rest = found[index + 2 : index + 4]
        if len(rest) < 2 or rest[0].kind != "word" or rest[1].text != "=":
            raise _refused(path, text, token)  # a pattern, or nothing that it is
        end = end_of_statement(found, index)
        if any(each.text == "," and not each.depth for each in found[index:end]):
            raise _refused(path, text, token)  # a second name would be lost
        return rest[0].text
    if words[:1] == ["async"]:
        words = words[1:]
    kind, name = (*words, "", "")[:2]
    if kind == "function" and name == "*":
        name = words[2]
    fits = re.fullmatch(r"[\w$]+", name) and name != "extends"
    if kind not in ("function", "class") or not fits:
        raise _refused(path, text, token)
    return name


def _refused(path: str, text: str, token: Token) -> ValueError:
    line = text[token.start : text.find("\n", token.start) % (len(text) + 1)]
    return ValueError(f"{path} has {line.strip()!r}; {ALLOWED}.")


def _wrapped(path: str, module: Module, exported: dict[str, set[str]]) -> str:
    edits = [(each.start, each.end, _local(path, each, exported)) for each in module.imports]
    edits += [(start, start + len("export "), "") for _, start in module.exports]
    text = module.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    listed = ", ".join(name for name, _ in module.exports)
    return f"// {path}\nconst {_name(path)} = (() => {{\n{text}return {{ {listed} }};\n}})();\n"


def _local(path: str, each: Import, exported: dict[str, set[str]]) -> str:
    """What stands in place of an import: the names out of the other module's function."""
    target = _target(path, each.source)
    for name, _ in each.names:
        if name not in exported[target]:
            raise ValueError(f"{path} imports {name} from {target}, which exports no such.")
    pairs = (name if name == local else f"{name}: {local}" for name, local in each.names)
    return f"const {{ {', '.join(pairs)} }} = {_name(target)};"


def _target(path: str, relative: str) -> str:
    return normpath(join(dirname(path), relative))


def _name(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
