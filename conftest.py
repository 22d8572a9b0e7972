"""The examples in docstrings, README and docs run as tests."""

import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from types import ModuleType

from sybil import Sybil
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_plugins = ["tests.parallel", "tests.selection"]


class Example(ModuleType):
    """The names of one document as a module, so that what it defines can be pickled."""

    def __init__(self, names: dict):
        super().__init__("example")
        self.names = names

    def __getattr__(self, name: str):
        try:
            return self.names[name]
        except KeyError:
            raise AttributeError(name) from None


def as_module(names: dict) -> None:
    """Let the examples of a document run as if they stood in a module."""
    names["__name__"] = "example"
    sys.modules["example"] = Example(names)


DOCTEST = DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)

pytest_collect_file = (
    Sybil(parsers=[DOCTEST], path="src", patterns=["**/*.py"])
    + Sybil(
        parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)],
        patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
        setup=as_module,
    )
).pytest()
