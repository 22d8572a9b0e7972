"""Mechanical mutants of a module's source: a constant, an axis, a sign, an operator, a name."""

import ast
import copy
import inspect
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

SWAPPED_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
                     ast.FloorDiv: ast.Mult}  # fmt: skip
SWAPPED_NAMES = {"sin": "cos", "cos": "sin"}
SWAPPED_COMPARISONS = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.LtE: ast.Lt, ast.GtE: ast.Gt}


@dataclass(frozen=True)
class Mutant:
    """A changed source.

    Attributes:
        name: Which thing, at which line, and what was changed, in words that stay the same.
        tree: The source as it was.
        index: Which node of it is changed.
        thing: Name of the thing in it.
    """

    name: str
    tree: ast.Module
    index: int
    thing: str

    def build(self) -> Any:
        """The thing, of a module of its own that has the changed source."""
        tree = copy.deepcopy(self.tree)
        node = next(n for i, n in enumerate(ast.walk(tree)) if i == self.index)
        list(_changes(node))
        module = ModuleType(f"mutant_{self.thing}")
        sys.modules[module.__name__] = module
        exec(compile(ast.fix_missing_locations(tree), self.name, "exec"), module.__dict__)
        return getattr(module, self.thing)


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
            yield Mutant(name, tree, index, thing.__name__)


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
        case ast.BinOp(op=op) if type(op) in SWAPPED_OPERATORS:
            node.op = SWAPPED_OPERATORS[type(op)]()
            yield f"with {type(node.op).__name__}"
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
            yield "without its sign"
        case ast.Attribute(attr=attr) if attr in ("sin", "cos"):
            node.attr = SWAPPED_NAMES[attr]
            yield f"as {node.attr}"
        case ast.Compare(ops=[op]) if type(op) in SWAPPED_COMPARISONS:
            node.ops = [SWAPPED_COMPARISONS[type(op)]()]
            yield f"with {type(node.ops[0]).__name__}"


def chosen(things: list[Any], number: int) -> list[Mutant]:
    """So many mutants of all of them, always the same."""
    every = [mutant for thing in things for mutant in mutants(thing)]
    random.Random(1).shuffle(every)
    return every[:number]
