"""The compiled library: where it is, which version of it fits this processor, and its threads."""

import ctypes
import os
from functools import cache
from hashlib import sha256
from pathlib import Path

BUILT = Path(__file__).parent / "csrc" / "built"
REQUIRED = "POSENC_REQUIRE_NATIVE"
DISABLED = "POSENC_NO_NATIVE"


def built() -> list[str]:
    """The capabilities that a library was built for.

    Example:
        >>> set(built()) <= {"avx2", "avx512", "default"}
        True
    """
    return sorted(path.stem.removeprefix("kernels_") for path in BUILT.glob("kernels_*.so"))


def described() -> str:
    """One line for people: which kernels run here.

    Example:
        >>> described().split(":")[0] in ("native C", "pure torch")
        True
    """
    if os.environ.get(DISABLED):
        return f"pure torch: {DISABLED} is set"
    if not built():
        return "pure torch: no compiled library; reinstall where there is a C compiler"
    try:
        _sound(BUILT / f"kernels_{built()[0]}.so")
    except OSError as error:
        return f"pure torch: {error}"
    return f"native C: built for {', '.join(built())}"


@cache
def library() -> ctypes.CDLL | None:
    """The library for this processor, loaded once; ``None`` where there is none.

    Environment:
        POSENC_REQUIRE_NATIVE: Where it is set, a missing library is an error.
        POSENC_NO_NATIVE: Where it is set, pure torch runs.

    Raises:
        ImportError: A library is required, and none can be loaded.
    """
    if os.environ.get(DISABLED):
        return None
    try:
        loaded = _opened(_for_this_processor())
    except OSError as error:
        if os.environ.get(REQUIRED):
            raise ImportError(
                f"{REQUIRED} is set and no native kernels could be loaded: {error}. Install posenc "
                f"where there is a C compiler, or unset {REQUIRED}."
            ) from error
        return None
    return loaded


def built_for(capability: str) -> ctypes.CDLL:
    """The library that was built for one capability, which this processor must have.

    Raises:
        OSError: There is none, or it was built from other sources.
    """
    return _opened(BUILT / f"kernels_{capability}.so")


def _opened(path: Path) -> ctypes.CDLL:
    """The library at ``path``, on the threads of torch."""
    opened = _sound(path)
    opened.posenc_set_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    opened.posenc_set_parallel(*_parallel_of_torch())
    return opened


def _sound(path: Path) -> ctypes.CDLL:
    """The library at ``path``, unless it was built from other sources than those beside it."""
    loaded = ctypes.CDLL(str(path))
    loaded.posenc_sources.restype = ctypes.c_char_p
    if loaded.posenc_sources().decode() != _digest_of_sources():
        raise OSError(f"{path.name} was built from other sources; install posenc again")
    return loaded


def _digest_of_sources() -> str:
    """As ``CMakeLists.txt`` computes it."""
    files = sorted(path for path in BUILT.parent.iterdir() if path.suffix in (".c", ".h"))
    digests = "".join(f"{sha256(path.read_bytes()).hexdigest()}\n" for path in files)
    return sha256(digests.encode()).hexdigest()


def _for_this_processor() -> Path:
    """torch's choice among the same names; ATEN_CPU_CAPABILITY overrides it for both."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability().lower()
    fitting = BUILT / f"kernels_{capability}.so"
    return fitting if fitting.exists() else BUILT / "kernels_default.so"


def _parallel_of_torch() -> tuple[int | None, int | None]:
    """Addresses of two functions of the OpenMP runtime that torch runs on: the one that opens a
    parallel region, and the one that tells a thread its number.

    They are looked up in torch's own library and what that is linked to, so they are never those of
    another copy of the runtime, whose second pool of threads would fight with torch's.
    """
    import torch

    try:
        torch_cpu = ctypes.CDLL(torch._C.__file__)
        found = torch_cpu.GOMP_parallel, torch_cpu.omp_get_thread_num
    except (OSError, AttributeError):
        return None, None  # everything runs on the calling thread
    opens, number = (ctypes.cast(function, ctypes.c_void_p).value for function in found)
    return opens, number
