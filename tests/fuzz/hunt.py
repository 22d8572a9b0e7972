"""The hunts, each a subject with its cases and its check, run for a number of cases or a time."""

import time
import traceback
from collections.abc import Callable
from math import inf

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.fuzz import attention, caches, calls, images, long_rows, shards

TURN = 150
"""About so many cases pass before every subject has had its turn again."""

Run = Callable[[int, int], None]
"""Runs a number of cases from a seed; raises where one fails, shrunk to its least."""


def _settings(cases: int, **more: int) -> settings:
    return settings(
        max_examples=cases, deadline=None, database=None, print_blob=False,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck), **more,
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


def compiled(case: calls.AttentionCase) -> None:
    """A call of attention in a full graph, which takes a second or two."""
    case.compiled, case.omit = True, False
    if case.relation != "some":  # a graph cannot compare positions, and asks who queries are
        case.positions = None
    case.softcap = None if case.remapping else case.softcap
    attention.check(case)


HUNTS: dict[str, tuple[Run, float]] = {
    "attention": (of_cases(calls.cases(), attention.check), 0.6),
    "long": (of_cases(long_rows.cases(), long_rows.check), 0.02),
    "packing": (of_cases(caches.packings(), caches.check_packing), 0.1),
    "images": (of_cases(images.batches(), images.check), 0.03),
    "conversations": (converse, 0.04),
    "shards": (of_cases(shards.cuts(), shards.check_cut), 0.02),
    "compiled": (of_cases(calls.cases(), compiled), 0.002),
}
"""Each subject with its part of the cases of a whole hunt."""


def hunt(names: list[str], cases: int, start: int, *, until: float = inf) -> None:
    """Go through the hunts in turns of growing seeds, until all cases or the time are used up.

    Args:
        names: Which hunts.
        cases: Number of cases, shared among the hunts.
        start: The first seed.
        until: Time of ``time.monotonic`` to stop at.
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


def hunted(asked: tuple[list[str], int, int, float]) -> str:
    """The fault that ended a process's hunt, if one did, for names, cases, first seed, minutes."""
    names, cases, start, minutes = asked
    torch.set_num_threads(1)
    try:
        hunt(names, cases, start, until=time.monotonic() + 60 * minutes)
    except (Exception, pytest.fail.Exception):  # that of ``pytest.raises`` is none of the former
        return f"{traceback.format_exc()}found from seed {start}; "
    return ""
