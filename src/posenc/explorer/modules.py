"""ES modules to one script: each module becomes a function that returns what it exports.

The page opens from disk, where a browser lets no module import another, and its security policy
admits one script by its hash. So modules are joined in the order of their imports.

Modules of the page say ``import { a, b as c } from "./x.js";`` at the start of a line, and
``export`` at the start of a line before one const, function or class.
"""

import re
from collections.abc import Callable
from posixpath import dirname, join, normpath

IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";', re.M)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function\*?) ([\w$]+))", re.M)


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what the module ``entry`` does; ``read`` gives the text of a path.

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
    parts: dict[str, str] = {}

    def visit(path: str) -> None:
        text = read(path)
        for _, source in IMPORT.findall(text):
            if _target(path, source) not in parts:
                visit(_target(path, source))
        exported = ", ".join(exports(text))
        text = IMPORT.sub(lambda each: _taken(each[1], _target(path, each[2])), text)
        text = EXPORT.sub("", text)
        parts[path] = (
            f"// {path}\nconst {_name(path)} = (() => {{\n{text}return {{ {exported} }};\n}})();\n"
        )

    visit(entry)
    return "".join(('"use strict";\n', *parts.values()))


def exports(text: str) -> list[str]:
    """The names that a module exports."""
    return EXPORT.findall(text)


def _taken(names: str, path: str) -> str:
    """What stands in place of an import: the names out of the other module's function."""
    pairs = (name.strip().replace(" as ", ": ") for name in names.split(",") if name.strip())
    return f"const {{ {', '.join(pairs)} }} = {_name(path)};"


def _target(path: str, relative: str) -> str:
    return normpath(join(dirname(path), relative))


def _name(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))
