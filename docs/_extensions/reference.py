"""The reference: a page a folder of public names, from their docstrings, and one a command.

The pages are written into ``docs/reference/`` when a build begins, from what the package exports: a
name that is exported is there, and one that is not is not.
"""

import ast
import inspect
import io
import re
from contextlib import redirect_stdout, suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import indent
from typing import TypeVar

from sphinx.application import Sphinx

import posenc
from posenc.cli.main import COMMANDS, main

PAGES = {
    "tokens": ("Tokens", "posenc.encodings.tokens", "What is added to the embeddings of tokens."),
    "queries_keys": (
        "Queries and keys",
        "posenc.encodings.queries_keys",
        "What changes queries and keys inside attention.",
    ),
    "scores": ("Scores", "posenc.encodings.scores", "What changes scores before the softmax."),
    "remapping": ("Remapping", "posenc.encodings.remapping", "What changes positions themselves."),
    "graphs": ("Graphs", "posenc.encodings.graphs", "Encodings of the nodes of graphs."),
}
"""Folders whose names are public at the top: file, title, module, what they hold."""

OWN = {
    "positions": "Where tokens stand.",
    "frequencies": "How fast pairs turn: schedules.",
    "distributed": "Sequences cut among devices.",
    "transformer": "The encoder that positions feed.",
    "recipes": "Compositions that published models have.",
    "interop": "Other libraries' models, configurations and signatures.",
    "inspection": "What an encoding does, as numbers.",
    "plots": "What an encoding does, drawn.",
    "testing": "The contract battery and the reference attention.",
    "audit": "Somebody's implementation, measured.",
    "lab": "Encodings compared by training.",
}
"""Modules that are public names: what they hold."""


def named(module_name: str) -> list[tuple[str, str]]:
    """The names of a module, or of those in it where it has none of its own."""
    found = [(module_name, name) for name in public(module_name)]
    if found:
        return found
    module = import_module(module_name)
    inner = [name for name in getattr(module, "__all__", []) if name]
    inner = inner or sorted(path.stem for path in Path(module.__path__[0]).glob("[!_]*.py"))
    return [
        (f"{module_name}.{each}", name)
        for each in inner
        for name in public(f"{module_name}.{each}")
    ]


def belongs(name: str, module_name: str) -> bool:
    """Whether a name that is public at the top comes from this folder."""
    there = getattr(posenc, name)
    home = getattr(there, "__module__", "")
    return f"{home}.".startswith(f"{module_name}.") or name in public(module_name)


def public(module_name: str) -> list[str]:
    """What a module offers, in its order; without a list of its own, what it defines."""
    module = import_module(module_name)
    listed = getattr(module, "__all__", None)
    if listed:
        return [name for name in listed if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, there in vars(module).items()
        if not name.startswith("_")
        and getattr(there, "__module__", "") == module_name
        and not isinstance(there, TypeVar)
    ]


def entry(module_name: str, name: str) -> str:
    """The directive of one public name."""
    there = getattr(import_module(module_name), name)
    if isinstance(there, dict):  # the docstring of a dictionary is that of its class
        return f"One entry each for {', '.join(f'`{key}`' for key in there)}.\n"
    if inspect.isclass(there):
        kind, more = (
            "autoclass",
            "   :members:\n   :exclude-members: extra_repr\n   :show-inheritance:\n",
        )
    elif inspect.isroutine(there):
        kind, more = "autofunction", ""
    else:
        kind, more = "py:data", f"\n{indent(said_of(module_name, name), '   ')}\n"
    return f"```{{eval-rst}}\n.. {kind}:: {module_name}.{name}\n{more}```\n"


def said_of(module_name: str, name: str) -> str:
    """The lines below the assignment of a name, in its module or in the one that it comes from.

    A number or an alias has the docstring of its type, which says nothing about it.
    """
    path = Path(str(import_module(module_name).__file__))
    files = path.parent.glob("*.py") if path.stem == "__init__" else [path]
    for file in sorted(files):
        lines = ast.parse(file.read_text(encoding="utf-8")).body
        for line, below in pairwise(lines):
            assigned = getattr(line, "targets", [getattr(line, "target", None)])
            if any(isinstance(each, ast.Name) and each.id == name for each in assigned):
                told = below.value if isinstance(below, ast.Expr) else None
                if isinstance(told, ast.Constant) and isinstance(told.value, str):
                    return inspect.cleandoc(told.value)
    raise ValueError(f"{module_name}.{name} is public; put a string below it that says what it is.")


def page(title: str, said: str, names: list[tuple[str, str]]) -> str:
    """A page of names: a heading each, so that the table of contents has them."""
    parts = [f"# {title}\n\n{said}\n"]
    parts += [f"## {name}\n\n{entry(module, name)}" for module, name in names]
    return "\n".join(parts)


def commands() -> str:
    """The help of every command, as the parser prints it."""
    parts = ["# The command line\n\nWhat `posenc COMMAND --help` says.\n"]
    for name in COMMANDS:
        said = io.StringIO()
        with redirect_stdout(said), suppress(SystemExit):
            main([name, "--help"])
        parts.append(f"## {name}\n\n```text\n{said.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)


def write(app: Sphinx) -> None:
    """All pages; a file that is right already stays as it is, so that a second build is short."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    top = [name for name in public("posenc") if name not in OWN]
    pages = {"commands": commands()}
    for file, (title, module, said) in PAGES.items():
        here = [name for name in top if belongs(name, module)]
        pages[file] = page(title, said, [("posenc", name) for name in here])
        top = [name for name in top if name not in here]
    pages["attention"] = page(
        "Attention and interfaces",
        "The call, the composition, and what an encoding of one's own is.",
        [("posenc", name) for name in top],
    )
    for module, said in OWN.items():
        with suppress(ModuleNotFoundError):
            pages[module] = page(f"posenc.{module}", said, named(f"posenc.{module}"))
    for file, text in pages.items():
        path = folder / f"{file}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def readable(_app, _what, _name, _thing, _options, lines: list[str]) -> None:
    """Docstrings say |x| and [*batch, seq]: in reStructuredText these would be markup."""
    for index, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(``.*?``|`[^`]+`)", line)
        parts[::2] = [re.sub(r"([|*_])", r"\\\1", part) for part in parts[::2]]
        lines[index] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """The pages are written before any is read."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", readable, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
