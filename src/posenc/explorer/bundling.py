"""The page: its parts joined into one file that needs no network and admits nothing foreign.

A page that opens from disk may import no module, and its security policy admits one script by its
hash. So each ES module becomes a function that returns what it exports, in the order of imports.
Modules say ``import { a, b as c } from "./x.js";`` at the start of a line, and ``export`` at the
start of a line before one const, function or class.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from posixpath import dirname, join, normpath

from posenc import __version__
from posenc.explorer.catalog import catalog

POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
STYLES = ("base", "layout", "controls", "figures", "sections")
INCLUDE = re.compile(r"^[ \t]*<!-- include (\S+) -->\n", re.M)
IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";', re.M)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function\*?) ([\w$]+))", re.M)


@cache
def page() -> str:
    """The explorer as one HTML document.

    Its Content-Security-Policy names the one script and the one style by their hashes, and allows
    no connection at all.

    Example:
        >>> "default-src 'none'" in page()
        True
    """
    script, style = _sources()
    body = INCLUDE.sub(lambda match: _read(match[1]), _read("index.html"))
    parts = {"policy": policy(), "version": __version__, "catalog": catalog()}
    parts |= {"style": style, "script": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], body)


def policy() -> str:
    """The Content-Security-Policy of the page, for those who serve it."""
    script, style = map(_hash, _sources())
    return POLICY.format(script=script, style=style)


@cache
def _sources() -> tuple[str, str]:
    """The one script and the one style."""
    style = "\n".join(_read(f"style/{name}.css") for name in STYLES)
    return joined("main.js", _read), style


def _read(path: str) -> str:
    return files("posenc.explorer").joinpath("page", path).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what the module ``entry`` does; ``read`` gives the text of a path."""
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
