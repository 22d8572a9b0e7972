"""The C kernels under sanitizers, in memory of random layouts that is just as large as needed."""

import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.tally import TALLY
from tests.kernels.sanitizers import COMPILER, DRIVERS, built, check

SANITIZERS = "address,undefined"
CASES = 200
"""Calls of a kernel that one run of a driver makes."""


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


@cache
def _program(driver: Path) -> Path:
    return built(driver, SANITIZERS, Path(_folder().name))


def run(count: int, start: int) -> None:
    """So many runs, of one family after the other, each from a seed of its own."""
    if COMPILER is None:
        TALLY.count("kernels", "no C compiler", count)
        return
    for index in range(count):
        driver = DRIVERS[(start + index) % len(DRIVERS)]
        check(_program(driver), str(start + index), str(CASES))
        TALLY.count("kernels", driver.stem, CASES)
