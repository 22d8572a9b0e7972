"""ES modules to one script: each module becomes a function that returns what it exports.

The page opens from disk, where a browser lets no module import another, and its security policy
admits one script by its hash. So modules are joined in the order of their imports. They may use
``import { a, b as c } from "./x.js"`` and ``export`` before const, function or class; anything
else is refused rather than guessed.
"""

import re
from collections.abc import Callable, Iterator
from posixpath import dirname, join, normpath

IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"(\.[^"]+)";[ \t]*\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?(?:const|function\*?|class) (\w+))", re.M)
LEFT_OVER = re.compile(r"^(?:import|export)\b.*", re.M)


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what the module ``entry`` does.

    Args:
        entry: Path of a module, as ``main.js``.
        read: From a path to the text of that module.

    Raises:
        ValueError: An import or export of another form, a cycle, or a name that is not exported.

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
    exported: dict[str, list[str]] = {}
    parts = ['"use strict";\n']
    for path, text in _in_order(entry, read):
        exported[path] = [match[2] for match in EXPORT.finditer(text)]
        parts.append(_wrapped(path, text, exported))
    return "".join(parts)


def _in_order(entry: str, read: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Paths and texts, each after those that it imports."""
    done: set[str] = set()

    def visit(path: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        if path in above:
            raise ValueError(f"{' → '.join((*above, path))} is a circle of imports; break it.")
        if path in done:
            return
        text = read(path)
        for match in IMPORT.finditer(text):
            yield from visit(_target(path, match[2]), (*above, path))
        done.add(path)
        yield path, text

    yield from visit(entry, ())


def _wrapped(path: str, text: str, exported: dict[str, list[str]]) -> str:
    def local(match: re.Match[str]) -> str:
        target = _target(path, match[2])
        names = [
            name.split(" as ") for name in re.split(r"\s*,\s*", match[1].strip(" ,\n")) if name
        ]
        for name in names:
            if name[0].strip() not in exported[target]:
                raise ValueError(f"{path} imports {name[0]} from {target}, which exports no such.")
        listed = ", ".join(": ".join(part.strip() for part in name) for name in names)
        return f"const {{ {listed} }} = {_name(target)};\n"

    text = EXPORT.sub(r"\1", IMPORT.sub(local, text))
    if left := LEFT_OVER.search(text):
        raise ValueError(
            f'{path} has {left[0]!r}; write import {{ … }} from "./…"; or export const, function '
            f"or class."
        )
    listed = ", ".join(exported[path])
    return f"// {path}\nconst {_name(path)} = (() => {{\n{text}return {{ {listed} }};\n}})();\n"


def _target(path: str, relative: str) -> str:
    return normpath(join(dirname(path), relative))


def _name(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
