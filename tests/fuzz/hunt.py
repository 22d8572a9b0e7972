"""The hunts, each a subject with its cases and its check, run for a number of cases or a time."""

import time
import traceback
from collections.abc import Callable
from math import inf

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.fuzz import (
    attention,
    caches,
    calls,
    images,
    kernels,
    long_rows,
    places,
    shards,
    told,
)
from tests.fuzz.tally import TALLY, Tally

PHASES = [Phase.generate, Phase.shrink]
"""What a hunt does; without the second it ends at the first thing found, whatever its size."""


TURN = 150
"""About so many cases pass before every subject has had its turn again."""

Run = Callable[[int, int], None]
"""Runs a number of cases from a seed; raises where one fails, shrunk to its least."""


def _settings(cases: int, **more: int) -> settings:
    return settings(
        max_examples=cases, deadline=None, database=None, print_blob=False, phases=PHASES,
        suppress_health_check=list(HealthCheck), **more,
    )  # fmt: skip


def of_cases(cases, check: Callable) -> Run:
    """A hunt whose cases are drawn one by one."""

    def run(count: int, start: int) -> None:
        @seed(start)
        @_settings(count)
        @given(cases)
        def hunt(case) -> None:
            check(case)

        hunt()

    return run


def converse(count: int, start: int) -> None:
    """Conversations behind a cache."""
    machine = seed(start)(caches.Conversation)
    run_state_machine_as_test(machine, settings=_settings(count, stateful_step_count=12))
    TALLY.count("cases", "conversations", count)


def compile_some(count: int, start: int) -> None:
    """Calls of attention in a full graph; each takes a second or two."""

    def check(case: calls.AttentionCase) -> None:
        case.compiled, case.omit = True, False
        if case.relation != "some":  # a graph cannot compare positions, and asks who queries are
            case.positions = None
        case.softcap = None if case.remapping else case.softcap
        attention.check(case)

    of_cases(calls.cases(), check)(count, start)


HUNTS: dict[str, tuple[Run, float]] = {
    "attention": (of_cases(calls.cases(), attention.check), 0.55),
    "long": (of_cases(long_rows.cases(), long_rows.check), 0.02),
    "told": (of_cases(told.cases(), told.check), 0.05),
    "packing": (of_cases(caches.packings(), caches.check_packing), 0.1),
    "images": (of_cases(images.batches(), images.check), 0.03),
    "conversations": (converse, 0.04),
    "places": (of_cases(places.layouts(), places.check_layout), 0.04),
    "coordinates": (of_cases(places.sums(), places.check_sum), 0.02),
    "shards": (of_cases(shards.cuts(), shards.check_cut), 0.02),
    "keys": (of_cases(shards.deals(), shards.check_dealt), 0.01),
    "kernels": (kernels.run, 0.002),
    "compiled": (compile_some, 0.002),
}
"""Each subject with its part of the cases of a whole hunt."""


def hunt(names: list[str], cases: int, start: int, *, until: float = inf) -> None:
    """Go through the hunts in turns of growing seeds, until so many cases are done.

    Args:
        names: Which hunts.
        cases: Number of cases, shared among the hunts.
        start: The first seed.
        until: Stop at this time (of ``time.monotonic``), whatever is done by then.
    """
    total = sum(HUNTS[name][1] for name in names)
    left = {name: max(2, round(cases * HUNTS[name][1] / total)) for name in names}
    turn = 0
    while any(left.values()) and time.monotonic() < until:
        for name in names:
            run, share = HUNTS[name]
            count = min(left[name], max(1, round(TURN * share)))
            if count and time.monotonic() < until:
                run(count, start + 7919 * turn)
                left[name] -= count
        turn += 1


def hunted(asked: tuple[list[str], int, int, float | None]) -> tuple[Tally, str]:
    """What a process of its own has met, and the fault that ended it, if one did.

    Args:
        asked: Names, cases and first seed as for ``hunt``, and minutes if there is such an end.
    """
    names, cases, start, minutes = asked
    torch.set_num_threads(1)
    until = inf if minutes is None else time.monotonic() + 60 * minutes
    try:
        hunt(names, cases, start, until=until)
    except (Exception, pytest.fail.Exception):  # that of ``pytest.raises`` is none of the former
        return TALLY, f"{traceback.format_exc()}found from seed {start}; "
    return TALLY, ""
