"""How much memory a call needs at its height, and an allocator that behaves alike for everybody."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import torch

PEAK_RESET = Path("/proc/self/clear_refs")
TRIM_THRESHOLD, MAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""
MAPPED = 32 << 20
"""Larger results come fresh from the system each time: the most that glibc comes to keep."""


def extra(run: Callable[[], object]) -> float | None:
    """Megabytes of one call at its height, its result included; ``None`` where nobody counts them.

    Memory that the allocator had kept is not seen, so a megabyte more or less means nothing.
    """
    device = torch.get_default_device().type
    if device == "cuda":
        return _extra_on_card(run)
    if device != "cpu" or not PEAK_RESET.exists():
        run()
        return None
    gc.collect()
    _call("malloc_trim", 0)
    before = _kilobytes("VmRSS")
    PEAK_RESET.write_text("5")
    result = run()
    peak = _kilobytes("VmHWM")
    del result
    return max(0.0, 1024e-6 * (peak - before))  # the system's kB are 1024 bytes


def _extra_on_card(run: Callable[[], object]) -> float:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = run()
    peak = torch.cuda.max_memory_allocated()
    del result
    return (peak - before) / 1e6


def keep_memory() -> None:
    """Put the allocator where it comes by itself in a program that has freed 32 MB once.

    Until then it is by luck of its heap whether smaller results lie in pages that are there, and
    first touches of pages are most of the time.
    """
    _call("mallopt", TRIM_THRESHOLD, MAPPED)
    _call("mallopt", MAP_THRESHOLD, MAPPED)


def available() -> int | None:
    """Bytes that may still be had."""
    facts = Path("/proc/meminfo")
    if not facts.exists():
        return None
    return 1024 * int(facts.read_text().split("MemAvailable:")[1].split()[0])


def _kilobytes(name: str) -> int:
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def _call(name: str, *numbers: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)  # glibc's own
    if function is not None:
        function(*numbers)
