"""What a plain `pytest` leaves out, and the lines at its end that say so.

A test bears `@pytest.mark.slow("why it takes long")`. It runs where the command line selects by
markers (`-m`) or names tests (`file.py::test`). Of many cases of one test, `spares=4` lets about
every fourth be quick, always those.
"""

import math
from collections import Counter
from zlib import crc32

import pytest

LEFT_OUT = pytest.StashKey[Counter]()


def selects_itself(config: pytest.Config) -> bool:
    return bool(config.option.markexpr) or any("::" in argument for argument in config.args)


def why(item: pytest.Item) -> str | None:
    """The reason for which a test is slow; None where it is not."""
    mark = item.get_closest_marker("slow")
    return mark and (mark.args[0] if mark.args else "of no given reason")


def number(item: pytest.Item) -> int:
    """One that its name alone gives, above 0."""
    return crc32(item.nodeid.encode()) + 1


def spare(item: pytest.Item) -> None:
    """Take the mark from a case that its test spares, so that no selection finds it slow."""
    item.own_markers = [
        mark
        for mark in item.own_markers
        if mark.name != "slow" or number(item) % mark.kwargs.get("spares", math.inf)
    ]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        spare(item)
    if selects_itself(config):
        return
    slow = [item for item in items if why(item)]
    config.stash[LEFT_OUT].update(why(item) for item in slow)
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not why(item)]
    if hasattr(config, "workeroutput"):  # of pytest-xdist; the process that reports collects none
        config.workeroutput["left_out"] = dict(config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Take over what a process of pytest-xdist left out: each of them the same."""
    left_out = getattr(node, "workeroutput", {}).get("left_out", {})
    node.config.stash[LEFT_OUT] |= Counter(left_out)


def pytest_terminal_summary(terminalreporter) -> None:
    left_out = terminalreporter.config.stash[LEFT_OUT]
    if left_out:
        terminalreporter.section("left out")
        for reason, count in left_out.most_common():
            terminalreporter.line(f"{count:5} {reason}")
        terminalreporter.line(f"{left_out.total():5} marked slow; `pytest -m slow` runs them")
