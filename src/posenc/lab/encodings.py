"""Encodings as a grid names them: public ones, somebody's own class, several of them together."""

import ast
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from posenc.encodings.expression import encoding_from, names
from posenc.encodings.positional import PLACES, Positional

Layers = Positional | list[Positional]
"""One encoding for all layers, or one for each."""

OWN = re.compile(
    r"\s*(?P<module>[\w./\\~ -]+?):(?P<name>[A-Za-z_]\w*)\s*(?P<given>\(.*\))\s*", re.S
)


def filled(use: Sequence[str], sizes: Mapping[str, Any]) -> tuple[str, ...]:
    """Expressions with the sizes of a run in the place of their names in braces."""
    try:
        return tuple(re.sub(r"\{(\w*)\}", lambda found: str(sizes[found[1]]), s) for s in use)
    except KeyError as error:
        raise ValueError(f"{{{error.args[0]}}} is none of {', '.join(sizes)}.") from None


def encoding(text: str) -> Any:
    """What an expression calls; see ``posenc.encodings.expression``.

    A class of one's own is named by its file or module, a colon and its name, as
    ``mine.py:MyBias(4)``. Its file is run; its arguments are literals.
    """
    own = OWN.fullmatch(text)
    try:
        if own is None:
            return encoding_from(text)
        call: Any = ast.parse(f"f{own['given']}", mode="eval").body
        given = [ast.literal_eval(each) for each in call.args]
        named = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        return _own_class(own["module"], own["name"])(*given, **named)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"{text!r}: {error}") from error


def drawn(use: Sequence[str], *, depth: int, nope_layers: Sequence[int], seed: int) -> Layers:
    """The encodings of so many layers, each in its place, with what they learn drawn from ``seed``.

    Of no expression, NoPE.
    """
    places: dict[str, list] = {place: [] for place in PLACES}
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        found = [encoding(text) for text in use]
    for made in found:
        if isinstance(made, Positional):
            for place, held in places.items():
                held.extend(getattr(made, place))
            continue
        fitting = [place for place, interface in PLACES.items() if isinstance(made, interface)]
        if not fitting:
            raise ValueError(f"{type(made).__name__} is no encoding; see posenc.encodings.base.")
        places[fitting[0]].append(made)
    if not nope_layers:
        return Positional(**places)
    if not all(0 <= layer < depth for layer in nope_layers):
        raise ValueError(f"nope_layers is {list(nope_layers)}; the layers are 0 … {depth - 1}.")
    outside = {place: places.pop(place) for place in ("tokens", "positions")}
    inside, bare = Positional(**places), Positional()
    layers = [bare if layer in nope_layers else inside for layer in range(depth)]
    layers[0] = Positional(**({} if 0 in nope_layers else places), **outside)
    return layers


def version(use: Sequence[str]) -> str:
    """A digest of the source files of the classes that are called, their docstrings left out.

    What these files import, and classes that they inherit from, have no part in it.
    """
    classes = []
    for text in use:
        if own := OWN.fullmatch(text):
            classes.append(_own_class(own["module"], own["name"]))
        else:
            called = set(re.findall(r"[A-Za-z_]\w*(?=\s*\()", text))
            classes += [names()[name] for name in called & names().keys()]
    paths = {Path(str(inspect.getsourcefile(each))) for each in classes}
    sources = sorted({_meaning(path, path.stat().st_mtime_ns) for path in paths})
    return sha256("\n".join(sources).encode()).hexdigest()[:12]


def _own_class(module: str, name: str) -> Any:
    path = Path(module.strip())
    is_file = path.suffix == ".py"
    beside = str(path.resolve().parent) if is_file else ""
    sys.path.insert(0, beside)  # files of a user import those beside them
    try:
        return getattr(_file(path.resolve()) if is_file else importlib.import_module(module), name)
    except Exception as error:  # whatever the file of a user raises
        raise ValueError(f"{module}:{name} cannot be imported: {error}") from None
    finally:
        sys.path.remove(beside)


@cache
def _file(path: Path) -> Any:
    unique = f"posenc_lab_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    given: Any = importlib.util.spec_from_file_location(unique, path)
    made = sys.modules[unique] = importlib.util.module_from_spec(given)
    given.loader.exec_module(made)
    return made


@cache
def _meaning(path: Path, changed: int) -> str:
    """The source, last changed at that time, without comments and docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        has_words = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_words and ast.get_docstring(node, clean=False):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
