"""How everything here is timed: interleaved rounds, medians, ratios within one run.

A machine is never quiet for long, so contenders take turns within a round: what disturbs one,
disturbs the others. Times of different runs are not compared.
"""

import gc
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import torch

from benchmarks import memory

clock: Callable[[], float] = time.perf_counter
"""What tells the time; ``time.process_time`` where other work runs beside. That of the processor,
all threads together, is told in any case."""
LEAST_SECONDS = 5e-3
"""A call faster than this is repeated within its turn until it takes so long; and before that as
often without being timed, so that nobody is timed in caches that another has filled."""


@dataclass(frozen=True)
class Case:
    """One comparison: what is measured, the work to compare with, and who takes part.

    Attributes:
        title: The benchmark and its sizes.
        contenders: What each does, ours first.
        base: ``dst.copy_(src)`` of as many bytes as the result has, or another work that none does
            cheaper.
        against: What ``base`` is.
        copied: Bytes that ``base`` copies, if it copies.
        moved: Bytes that any way to do this must read or write at least.
        family: What grows over several cases, if this is one of those.
        size: How large it is here.
        most_rounds: A bound for what takes long.
        gradients: Whether they are recorded.
    """

    title: str
    contenders: Mapping[str, Callable[[], object]]
    base: Callable[[], object]
    against: str = "copy"
    copied: int | None = None
    moved: int | None = None
    family: str | None = None
    size: int | None = None
    most_rounds: int | None = None
    gradients: bool = False


class Spent(NamedTuple):
    """What a call took.

    Attributes:
        seconds: By ``clock``.
        processor: Seconds of the processor, all threads together.
    """

    seconds: float
    processor: float


@dataclass(frozen=True)
class Timing:
    """Median time of one contender, and what it means beside the others.

    Attributes:
        case: Title of the case.
        name: The contender.
        milliseconds: Of one call.
        times_base: Over the time of ``against``.
        against: What that is.
        times_ours: Over the time of the first contender.
        processor_milliseconds: Of all threads together.
        processor_times_ours: Likewise, over that of the first contender.
        roofline: Bytes that must be moved a second, as a share of what a copy moves in this run.
        megabytes: What one call needs at its height beyond what was there.
        family: What grows over several cases.
        size: How large it is.
    """

    case: str
    name: str
    milliseconds: float
    times_base: float
    against: str
    times_ours: float
    processor_milliseconds: float
    processor_times_ours: float
    roofline: float | None
    megabytes: float | None
    family: str | None
    size: int | None


def measure(case: Case, rounds: int) -> list[Timing]:
    """Time all contenders of a case and its base, turn by turn."""
    with torch.set_grad_enabled(case.gradients):
        return _measured(case, rounds)


def _measured(case: Case, rounds: int) -> list[Timing]:
    rounds = rounds if case.most_rounds is None else min(rounds, case.most_rounds)
    runs = {**case.contenders, case.against: case.base}
    for run in runs.values():
        if rounds > 1:
            run()  # what is compiled or built once is not counted below
    peaks = {name: memory.extra(run) for name, run in runs.items()}
    repeats = {name: _repeats(run) if rounds > 1 else 1 for name, run in runs.items()}
    seconds: dict[str, list[Spent]] = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            if repeats[name] > 1:
                _time(run, repeats[name])
            seconds[name].append(_time(run, repeats[name]))
    gc.enable()
    medians, processor = (
        {name: median(times) for name, times in one.items()} for one in _apart(seconds)
    )
    ours, first = next(iter(medians.values())), next(iter(processor.values()))
    return [
        Timing(
            case=case.title,
            name=name,
            milliseconds=1e3 * medians[name],
            times_base=medians[name] / medians[case.against],
            against=case.against,
            times_ours=medians[name] / ours,
            processor_milliseconds=1e3 * processor[name],
            processor_times_ours=processor[name] / first if first else float("nan"),
            roofline=share_of_copy(case, medians[name], medians[case.against]),
            megabytes=peaks[name],
            family=case.family,
            size=case.size,
        )
        for name in runs
    ]


def share_of_copy(case: Case, seconds: float, copy_seconds: float) -> float | None:
    """How much of the speed of memory is used, where a copy reads and writes each of its bytes."""
    if case.moved is None or case.copied is None:
        return None
    return (case.moved / seconds) / (2 * case.copied / copy_seconds)


def copying(*results: torch.Tensor) -> Callable[[], object]:
    """A copy of results into memory that exists already.

    Nothing is copied from untouched zeros: these are one page of the system, over and over.
    """
    pairs = [(torch.ones_like(x), torch.ones_like(x)) for x in results]
    return lambda: [target.copy_(source) for target, source in pairs]


def bytes_of(*tensors: torch.Tensor) -> int:
    """How large some tensors are."""
    return sum(x.numel() * x.element_size() for x in tensors)


def machine() -> dict[str, str | int]:
    """What a reader needs to know of where it ran."""
    device = torch.get_default_device()
    card = {"card": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return card | {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def wait() -> None:
    """Until an accelerator has done what it was asked for, if work goes to one."""
    if torch.get_default_device().type != "cpu":
        torch.accelerator.synchronize()


def _apart(spent: Mapping[str, list[Spent]]) -> tuple[dict[str, list[float]], ...]:
    """By the clock, and by the processor."""
    return tuple({name: [s[kind] for s in some] for name, some in spent.items()} for kind in (0, 1))


def _time(run: Callable[[], object], repeats: int) -> Spent:
    wait()
    begin, processor = clock(), time.process_time()
    for _ in range(repeats):
        run()
    wait()
    return Spent((clock() - begin) / repeats, (time.process_time() - processor) / repeats)


def _repeats(run: Callable[[], object]) -> int:
    seconds = _time(run, 1).seconds
    if seconds < 10 * LEAST_SECONDS:  # the first call after others is a slow one
        seconds = min(_time(run, 1).seconds for _ in range(3))
    return max(1, round(LEAST_SECONDS / max(seconds, 1e-7)))
