"""All encodings by the place where they act, with what their files say of them, as HTML."""

import ast
import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files

PLACES = {
    "tokens": "Added to tokens",
    "queries_keys": "Turning queries and keys",
    "scores": "Changing scores",
    "remapping": "Changing positions",
    "graphs": "Nodes of graphs",
}
INPUTS = {"AxialForm", "Graph"}  # what encodings are given
PUBLIC = re.compile(r"from \.encodings\.(\w+) import (\w+) as")


def catalog() -> str:
    """A list for each place. It reads sources, so that nothing is imported."""
    return "\n".join(
        f"<h3>{said}</h3>\n<dl>\n{''.join(_entries(place))}</dl>" for place, said in PLACES.items()
    )


def _entries(place: str) -> Iterator[str]:
    found = PUBLIC.findall(files("posenc").joinpath("__init__.pyi").read_text(encoding="utf-8"))
    public = {name for where, name in found if where == place} - INPUTS
    folder = files("posenc").joinpath("encodings", place)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".py") or file.name.startswith("_"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        own = [x.name for x in tree.body if isinstance(x, ast.ClassDef) and x.name in public]
        if own:
            said = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
            yield f"<dt>{', '.join(own)}</dt><dd>{escape(said)}</dd>\n"
