"""The hunts, each a subject with its cases and its check, run for a number of cases or a time."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.fuzz import (
    attention,
    caches,
    commands,
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


@dataclass(frozen=True)
class Hunt:
    """One subject.

    Attributes:
        run: Runs a number of cases from a seed; raises where one fails, shrunk to its least.
        share: Part of the cases of a whole hunt.
    """

    run: Callable[[int, int], None]
    share: float


def _settings(cases: int, **more: int) -> settings:
    return settings(
        max_examples=cases, deadline=None, database=None, print_blob=False, phases=PHASES,
        suppress_health_check=list(HealthCheck), **more,
    )  # fmt: skip


def of_cases(cases, check: Callable) -> Callable[[int, int], None]:
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

    def check(case: attention.AttentionCase) -> None:
        case.compiled, case.omit = True, False
        if case.relation != "some":  # a graph cannot compare positions, and asks who queries are
            case.positions = None
        case.softcap = None if case.remapping else case.softcap
        attention.check(case)

    of_cases(attention.cases(), check)(count, start)


HUNTS = {
    "attention": Hunt(of_cases(attention.cases(), attention.check), 0.55),
    "long": Hunt(of_cases(long_rows.cases(), long_rows.check), 0.02),
    "told": Hunt(of_cases(told.cases(), told.check), 0.05),
    "packing": Hunt(of_cases(caches.packings(), caches.check_packing), 0.1),
    "images": Hunt(of_cases(images.batches(), images.check), 0.03),
    "conversations": Hunt(converse, 0.04),
    "places": Hunt(of_cases(places.layouts(), places.check_layout), 0.04),
    "coordinates": Hunt(of_cases(places.sums(), places.check_sum), 0.02),
    "commands": Hunt(of_cases(commands.lines(), commands.check_line), 0.02),
    "shards": Hunt(of_cases(shards.cuts(), shards.check_cut), 0.02),
    "keys": Hunt(of_cases(shards.deals(), shards.check_dealt), 0.01),
    "kernels": Hunt(kernels.run, 0.002),
    "compiled": Hunt(compile_some, 0.002),
}


def hunt(names: list[str], cases: int, start: int, *, until: float | None = None) -> None:
    """Go through the hunts in turns of growing seeds, until so many cases are done.

    Args:
        names: Which hunts.
        cases: Number of cases, shared among the hunts.
        start: The first seed.
        until: Stop at this time (of ``time.monotonic``), whatever is done by then.
    """
    shares = {name: HUNTS[name].share for name in names}
    left = {
        name: max(2, round(cases * share / sum(shares.values()))) for name, share in shares.items()
    }
    turn = 0
    while any(left.values()) and (until is None or time.monotonic() < until):
        for name in names:
            count = min(left[name], max(1, round(TURN * shares[name])))
            if count and (until is None or time.monotonic() < until):
                HUNTS[name].run(count, start + 7919 * turn)
                left[name] -= count
        turn += 1


def hunted(asked: tuple[list[str], int, int, float | None]) -> tuple[Tally, str]:
    """What a process of its own has met, and the fault that ended it, if one did.

    Args:
        asked: Names, cases and first seed as for ``hunt``, and minutes if there is such an end.
    """
    names, cases, start, minutes = asked
    torch.set_num_threads(1)
    until = None if minutes is None else time.monotonic() + 60 * minutes
    try:
        hunt(names, cases, start, until=until)
    except (
        Exception,
        pytest.fail.Exception,
    ):  # what ``pytest.raises`` raises is none of the former
        return TALLY, f"{traceback.format_exc()}found from seed {start}; "
    return TALLY, ""
