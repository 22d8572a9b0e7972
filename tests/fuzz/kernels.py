"""The C kernels under sanitizers, in memory of random layouts that is just as large as needed."""

import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.tally import TALLY
from tests.kernels.test_sanitized import COMPILER, built, check

SANITIZERS = "address,undefined"
CASES = 200
"""Calls of operators that one run makes."""


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


@cache
def _program() -> Path:
    return built(SANITIZERS, Path(_folder().name))


def run(count: int, start: int) -> None:
    """So many runs, each from a seed of its own."""
    if COMPILER is None:
        TALLY.count("kernels", "no C compiler", count)
        return
    for index in range(count):
        check(_program(), str(start + index), str(CASES))
        TALLY.count("kernels", "operators", CASES)
