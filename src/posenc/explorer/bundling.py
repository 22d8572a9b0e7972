"""The page: its parts joined into one file that needs no network and admits nothing foreign.

A page that opens from disk may import no module, and its security policy admits one script by its
hash. So each ES module becomes a function that returns what it exports, in the order of imports.
Modules say ``import { a, b as c } from "./x.js";`` at the start of a line, and ``export`` at the
start of a line before one const, function or class.
"""

import ast
import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from importlib.resources import files
from posixpath import dirname, join, normpath

from posenc import __version__

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
    hashes = (hashlib.sha256(text.encode()).digest() for text in _sources())
    script, style = (base64.b64encode(each).decode() for each in hashes)
    return POLICY.format(script=script, style=style)


@cache
def _sources() -> tuple[str, str]:
    """The one script and the one style."""
    style = "\n".join(_read(f"style/{name}.css") for name in STYLES)
    return joined("main.js", _read), style


def _read(path: str) -> str:
    return files("posenc.explorer").joinpath("page", path).read_text(encoding="utf-8")


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what the module ``entry`` does; ``read`` gives the text of a path."""
    parts: dict[str, str] = {}

    def visit(path: str) -> None:
        text = read(path)

        def taken(match: re.Match[str]) -> str:
            """What stands in place of an import: the names out of the other module's function."""
            source = normpath(join(dirname(path), match[2]))
            if source not in parts:
                visit(source)
            names = " ".join(match[1].split()).strip(",").replace(" as ", ": ")
            return f"const {{ {names} }} = {_name(source)};"

        exported = ", ".join(EXPORT.findall(text))
        body = EXPORT.sub("", IMPORT.sub(taken, text))
        parts[path] = (
            f"// {path}\nconst {_name(path)} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
        )

    visit(entry)
    return "".join(('"use strict";\n', *parts.values()))


def _name(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))


# The list of encodings ----------------------------------------------------------------------------

PLACES = {
    "tokens": "Added to tokens",
    "queries_keys": "Turning queries and keys",
    "scores": "Changing scores",
    "remapping": "Changing positions",
    "graphs": "Nodes of graphs",
}
INPUTS = {"AxialForm", "Graph"}  # what encodings are given


def catalog() -> str:
    """All encodings by the place where they act, as HTML, read from sources: none is imported."""
    listed = files("posenc").joinpath("__init__.pyi").read_text(encoding="utf-8")
    parts = []
    for place, said in PLACES.items():
        public = {*re.findall(rf"from \.encodings\.{place} import (\w+) as", listed)} - INPUTS
        parts.append(f"<h3>{said}</h3>\n<dl>\n{''.join(_entries(place, public))}</dl>")
    return "\n".join(parts)


def _entries(place: str, public: set[str]) -> Iterator[str]:
    """The public encodings of each file, and the first sentence that it says of itself."""
    folder = files("posenc").joinpath("encodings", place)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".py") or file.name.startswith("_"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        own = [x.name for x in tree.body if isinstance(x, ast.ClassDef) and x.name in public]
        if own:
            said = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
            yield f"<dt>{', '.join(own)}</dt><dd>{escape(said)}</dd>\n"
