"""How everything here is timed: interleaved rounds, medians, ratios within one run.

A machine is never quiet for long, so contenders take turns within a round: what disturbs one,
disturbs the others. Times of different runs are not compared.
"""

import gc
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

LEAST_SECONDS = 2e-3
"""A call faster than this is repeated within its turn until it takes so long."""


@dataclass(frozen=True)
class Case:
    """One comparison: what is measured, the work to compare with, and who takes part.

    Attributes:
        title: The benchmark and its sizes.
        contenders: What each does, ours first.
        copy: ``dst.copy_(src)`` of as many bytes as the result has: no result comes cheaper.
    """

    title: str
    contenders: dict[str, Callable[[], object]]
    copy: Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Median time of one contender, and what it means beside the others."""

    case: str
    name: str
    milliseconds: float
    times_copy: float
    times_ours: float


def measure(case: Case, rounds: int) -> list[Timing]:
    """Time all contenders of a case, turn by turn."""
    runs = {**case.contenders, "copy": case.copy}
    repeats = {name: _repeats(run) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            seconds[name].append(_time(run, repeats[name]))
    gc.enable()
    medians = {name: median(times) for name, times in seconds.items()}
    ours = medians[next(iter(case.contenders))]
    return [
        Timing(case.title, name, 1e3 * m, m / medians["copy"], m / ours)
        for name, m in medians.items()
        if name != "copy"
    ]


def copying(result: torch.Tensor) -> Callable[[], object]:
    """A copy of a result into memory that exists already."""
    source, target = torch.zeros_like(result), torch.zeros_like(result)
    return lambda: target.copy_(source)


def machine() -> dict[str, str | int]:
    """What a reader needs to know of where it ran."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def _time(run: Callable[[], object], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats


def _repeats(run: Callable[[], object]) -> int:
    run()
    return max(1, round(LEAST_SECONDS / max(_time(run, 1), 1e-7)))
