"""Mechanical mutants of a module's source: a constant, an axis, a sign, an operator, a name."""

import ast
import copy
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
             ast.FloorDiv: ast.Mult}  # fmt: skip
NAMES = {"sin": "cos", "cos": "sin"}
COMPARISONS = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.LtE: ast.Lt, ast.GtE: ast.Gt}


class Mutant(NamedTuple):
    """Of which thing, at which line and how changed, and a call that builds it."""

    name: str
    thing: str
    build: Callable[[], Any]


def mutants(thing: Any) -> Iterator[Mutant]:
    """Every mutant of the lines of ``thing``, in the order of its source."""
    source = Path(inspect.getsourcefile(thing)).read_text()
    tree = ast.parse(source)
    lines, first = inspect.getsourcelines(thing)
    for index, node in enumerate(ast.walk(tree)):
        if not first <= getattr(node, "lineno", 0) < first + len(lines):
            continue
        for words in _changes(copy.copy(node)):
            text = " ".join((ast.get_source_segment(source, node) or "").split())
            place = f"{node.lineno - first}:{node.col_offset}"
            name = f"{thing.__name__}:{place} {text[:40]!r} {words}"
            yield Mutant(name, thing.__name__, partial(_build, tree, index, thing.__name__))


def _build(tree: ast.Module, index: int, thing: str) -> Any:
    """The thing, of a module of its own in whose source one node is changed."""
    tree = copy.deepcopy(tree)
    list(_changes(list(ast.walk(tree))[index]))
    module = sys.modules[f"mutant_{thing}"] = ModuleType(f"mutant_{thing}")
    exec(compile(ast.fix_missing_locations(tree), module.__name__, "exec"), module.__dict__)
    return getattr(module, thing)


def _changes(node: ast.AST) -> Iterator[str]:
    """Change a node in place, one way; what was done."""
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() as value):
            node.value = value + 1
            yield f"+ 1 ({value + 1})"
        case ast.Constant(value=float() as value):
            node.value = value * 2 if value else 1.0
            yield "doubled"
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            node.op = OPERATORS[type(op)]()
            yield f"with {type(node.op).__name__}"
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
            yield "without its sign"
        case ast.Attribute(attr=attr) if attr in NAMES:
            node.attr = NAMES[attr]
            yield f"as {node.attr}"
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            node.ops = [COMPARISONS[type(op)]()]
            yield f"with {type(node.ops[0]).__name__}"


def chosen(things: list[Any], number: int) -> list[Mutant]:
    """So many mutants of all of them, always the same."""
    every = [mutant for thing in things for mutant in mutants(thing)]
    random.Random(1).shuffle(every)
    return every[:number]
