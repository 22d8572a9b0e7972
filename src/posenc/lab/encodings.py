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
from types import ModuleType
from typing import Any

import torch
from torch import nn

from posenc.encodings.base import (
    PositionRemapping,
    QueryKeyEncoding,
    ScoreEncoding,
    TokenEncoding,
)
from posenc.encodings.expression import encoding_from, names
from posenc.encodings.positional import Positional

OWN = re.compile(
    r"\s*(?P<module>[\w./\\~ -]+?):(?P<name>[A-Za-z_]\w*)\s*(?P<arguments>\(.*\))\s*", re.S
)
BLANK = re.compile(r"\{(\w*)\}")


def filled(text: str, sizes: Mapping[str, int]) -> str:
    """``text`` with the sizes of a run in the place of their names in braces.

    Raises:
        ValueError: A name is none of the sizes.

    Example:
        >>> filled("Learned({dim}, {longest})", {"dim": 64, "longest": 256})
        'Learned(64, 256)'
    """

    def size(found: re.Match) -> str:
        if found[1] not in sizes:
            raise ValueError(f"{text!r}: {found[0]} is none of {{{'}, {'.join(sizes)}}}.")
        return str(sizes[found[1]])

    return BLANK.sub(size, text)


def encoding(text: str) -> Any:
    """What an expression calls; see ``posenc.encodings.expression``, and ``mine.py:MyBias(4)``.

    A class of one's own is named by its file or module, a colon and its name; its file is run. Its
    arguments are literals.

    Raises:
        ValueError: It cannot be read, found or called.

    Example:
        >>> encoding("posenc.encodings.scores.alibi:ALiBi(4)")
        ALiBi(heads=4)
        >>> encoding("ALiBi(4)")
        ALiBi(heads=4)
    """
    own = OWN.fullmatch(text)
    if own is None:
        return encoding_from(_public(text))
    made = _own_class(own["module"], own["name"])
    try:
        call = ast.parse(f"f{own['arguments']}", mode="eval").body
        assert isinstance(call, ast.Call)
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(
            f"{text!r}: arguments must be literals, as in mine.py:MyBias(4)."
        ) from None
    try:
        return made(*given, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text!r}: {error}") from error


def positional(
    use: Sequence[str], *, depth: int, nope_layers: Sequence[int] = ()
) -> Positional | list[Positional]:
    """The encodings of a model, each in the place that it is for.

    Args:
        use: Expressions; none of them is NoPE.
        depth: Layers of the model.
        nope_layers: Layers, from 0 on, in which attention is told nothing.

    Raises:
        ValueError: An expression does not fit, or a layer is not there.

    Example:
        >>> positional(["Rotary(16)", "ALiBi(4)"], depth=2).scores
        ModuleList(
          (0): ALiBi(heads=4)
        )
    """
    places: dict[str, list] = {place: [] for place in PLACES}
    for text in use:
        made = encoding(text)
        if isinstance(made, Positional):
            for place, held in places.items():
                held.extend(getattr(made, place))
        else:
            places[_place(made, text)].append(made)
    if not nope_layers:
        return Positional(**places)
    for layer in nope_layers:
        if not 0 <= layer < depth:
            raise ValueError(f"nope_layers holds {layer}; the model has layers 0 … {depth - 1}.")
    outside = {place: places.pop(place) for place in ("tokens", "positions")}
    inside, bare = Positional(**places), Positional()
    layers = [bare if layer in nope_layers else inside for layer in range(depth)]
    first = {} if layers[0] is bare else places
    layers[0] = Positional(**first, **outside)
    return layers


PLACES = {
    "tokens": TokenEncoding,
    "queries_keys": QueryKeyEncoding,
    "scores": ScoreEncoding,
    "positions": PositionRemapping,
}


def version(use: Sequence[str]) -> str:
    """A digest of the source files of the classes that are called, their docstrings left out.

    What these files import, and classes that they inherit from, have no part in it.

    Example:
        >>> version(["ALiBi(4)"]) == version(["ALiBi(8)"]) != version(["Rotary(16)"])
        True
    """
    sources = sorted(
        {_meaning(path, path.stat().st_mtime_ns) for text in use for path in _sources(text)}
    )
    return sha256("\n".join(sources).encode()).hexdigest()[:12]


def learned(made: Positional | Sequence[Positional]) -> int:
    """How many numbers the encodings of a model learn."""
    layers = [made] if isinstance(made, Positional) else list(made)
    parameters = {each for layer in layers for each in layer.parameters()}
    return sum(each.numel() for each in parameters)


def drawn(use: Sequence[str], *, depth: int, nope_layers: Sequence[int], seed: int) -> nn.Module:
    """The same as ``positional``, as one module, with what it learns drawn from ``seed``."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        made = positional(use, depth=depth, nope_layers=nope_layers)
    return made if isinstance(made, Positional) else nn.ModuleList(made)


def _place(made: object, text: str) -> str:
    for place, interface in PLACES.items():
        if isinstance(made, interface):
            return place
    raise ValueError(
        f"{text!r} is a {type(made).__name__}, which is no encoding; implement one of "
        f"{', '.join(each.__name__ for each in PLACES.values())} from posenc.encodings.base."
    )


def _public(text: str) -> str:
    """The import path of a public encoding cut to its name, as the expressions have it."""
    return re.sub(r"\bposenc(?:\.[a-z_]+)+\.(?=[A-Z])", "", text)


def _own_class(module: str, name: str) -> Any:
    found = getattr(_module(module.strip()), name, None)
    if found is None:
        raise ValueError(f"{module} has no {name}; check the name behind the colon.")
    return found


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise ValueError(f"{name}: {error}; give a module, or a file ending in .py.") from None
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise ValueError(f"{name}: there is no file {path}; paths are those beside the grid.")
    return _file(path)


@cache
def _file(path: Path) -> ModuleType:
    unique = f"posenc_lab_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    given = importlib.util.spec_from_file_location(unique, path)
    assert given is not None
    assert given.loader is not None
    made = importlib.util.module_from_spec(given)
    sys.modules[unique] = made
    try:
        given.loader.exec_module(made)
    except Exception as error:
        raise ValueError(f"{path.name} cannot be run: {type(error).__name__}: {error}") from error
    return made


def _sources(text: str) -> list[Path]:
    own = OWN.fullmatch(text)
    if own is not None:
        return [Path(str(inspect.getsourcefile(_own_class(own["module"], own["name"]))))]
    called = set(re.findall(r"[A-Za-z_]\w*(?=\s*\()", _public(text))) & names().keys()
    return [Path(str(inspect.getsourcefile(names()[name]))) for name in called]


@cache
def _meaning(path: Path, changed: int) -> str:
    """The source, last changed at that time, without comments and docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
