"""The compiled operators: which library fits this processor, and whether it serves.

Environment:
    POSENC_REQUIRE_NATIVE: Where it is set, a missing library is an error.
    POSENC_NO_NATIVE: Where it is set, pure torch runs.
"""

import ctypes
import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

SOURCES = Path(__file__).parent / "csrc"
BUILT = SOURCES / "built"
REQUIRED = "POSENC_REQUIRE_NATIVE"
DISABLED = "POSENC_NO_NATIVE"
MISSING = "no compiled library; reinstall where there is a C compiler"


def built() -> list[str]:
    """The capabilities of processors that a library was built for."""
    return sorted(path.stem.removeprefix("kernels_") for path in BUILT.glob("kernels_*.so"))


def described() -> str:
    """One line for people: which kernels run here. It imports no torch."""
    if os.environ.get(DISABLED):
        return f"pure torch: {DISABLED} is set"
    names = built()
    trouble = _stale(BUILT / f"kernels_{names[0]}.so") if names else MISSING
    return f"pure torch: {trouble}" if trouble else f"native C: built for {', '.join(names)}"


@cache
def loaded() -> str:
    """Load the library for this processor, whose operators are ``torch.ops.posenc``.

    Returns:
        Nothing where they serve, else why not.

    Raises:
        ImportError: ``POSENC_REQUIRE_NATIVE`` is set, and they do not.
    """
    if os.environ.get(DISABLED):
        return f"{DISABLED} is set"
    trouble = _trouble(_for_this_processor())
    if trouble and os.environ.get(REQUIRED):
        raise ImportError(f"{REQUIRED} is set and no native kernels could be loaded: {trouble}.")
    return trouble


def schemas() -> list[str]:
    """Name and signature of every operator, as C defines them."""
    text = (SOURCES / "schemas.h").read_text(encoding="utf-8")
    return [name + signature for name, signature in re.findall(r'OPERATOR\((\w+), "(.+)"\)', text)]


def _for_this_processor() -> Path:
    """torch's choice among the same names; ATEN_CPU_CAPABILITY overrides it for both."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability().lower()
    fitting = BUILT / f"kernels_{capability}.so"
    return fitting if fitting.exists() else BUILT / "kernels_default.so"


def _trouble(path: Path) -> str:
    if trouble := _stale(path) if path.exists() else MISSING:
        return trouble
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    if ctypes.c_int.in_dll(library, "posenc_registered").value:
        return "torch took no operators: it is too old, or another copy of posenc is loaded"
    return ""


def _stale(path: Path) -> str:
    if _digest_of_sources().encode() in path.read_bytes():
        return ""
    return f"{path.name} was built from other sources; install posenc again"


def _digest_of_sources() -> str:
    """As ``CMakeLists.txt`` computes it."""
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in (".c", ".h"))
    digests = "".join(f"{sha256(path.read_bytes()).hexdigest()}\n" for path in files)
    return sha256(digests.encode()).hexdigest()
