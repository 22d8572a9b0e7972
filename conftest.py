"""The examples in docstrings, README and docs run as tests."""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser

DOCTEST = DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)

pytest_collect_file = (
    Sybil(parsers=[DOCTEST], path="src", patterns=["**/*.py"])
    + Sybil(
        parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)],
        patterns=["README.md", "CONTRIBUTING.md", "docs/*.md"],
    )
).pytest()
