"""The examples in docstrings, README and docs run as tests."""

import sys
from contextlib import suppress
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from types import ModuleType

import pytest
from sybil import Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_plugins = ["tests.garbage", "tests.parallel", "tests.selection"]


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
        patterns=["README.md", "docs/*.md", "docs/start/*.md", "docs/how-to/*.md"],
        setup=as_module,
    )
).pytest()

BEGUN = pytest.StashKey[set[int]]()
"""Where the examples begin that this process has run, by document."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Run first what stands before an example: it builds on that, and may be asked for alone.

    Processes that share the suite take examples of one document from each other; where one has run
    a later example of a document already, it begins that anew.
    """
    if not isinstance(item, SybilItem):
        return
    begun = item.parent.stash.setdefault(BEGUN, set())
    names = item.example.document.namespace
    if any(n >= item.example.region.start for n in begun):
        begun.clear()
        if names.get("__name__") == "example":  # those of a source are the module's own
            names.clear()
            as_module(names)
    for example in item.example.document.examples():
        start = example.region.start
        if start >= item.example.region.start:
            break
        if start not in begun:
            begun.add(start)
            with suppress(Exception):  # told where it is the item itself
                example.evaluate()
    begun.add(item.example.region.start)
