"""The whole suite is shared among the cores: one process a core, one thread a process."""

import os
import signal
import threading

import pytest

MOST = 8  # Every process imports torch and collects the suite; more of them end no sooner.

# Freed memory is used again, not given back and asked for anew (glibc; others heed neither).
MEMORY_KEPT = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processes(config: pytest.Config) -> int:
    """How many to take where none are asked for: 0 is this process alone.

    Somebody who names a file or a test, or stops in a debugger, wants to see it happen here.
    """
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or option.usepdb or option.trace or option.collectonly or cores() == 1:
        return 0
    return min(cores(), MOST)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose for pytest-xdist what the command line leaves open; `-n` always wins."""
    option = config.option
    if not hasattr(option, "numprocesses") or hasattr(config, "workerinput"):
        return
    if option.numprocesses is None:
        option.numprocesses = processes(config)
    if option.numprocesses and option.dist == "no":
        option.dist = "worksteal"
    if option.numprocesses:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        for name in MEMORY_KEPT:
            os.environ.setdefault(name, str(2**28))


def pytest_configure() -> None:
    """Hear Ctrl-C again where a shell ignores it for all that runs in its background.

    What is ignored here would be ignored in the commands that tests start and interrupt.
    """
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
