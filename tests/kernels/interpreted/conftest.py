"""Triton kernels run here by its interpreter, on the CPU; ``test_triton.py`` sets that up.

How a kernel is run is decided once in a process, so these tests have one of their own.

One thing of the interpreter is replaced: it cuts float32 off to bfloat16, where a compiled kernel
rounds to nearest, ties to even (``test_triton.py`` reads that in their code).
"""

import os

import pytest

if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore_glob = ["*.py"]
else:
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    cut_off = interpreter._convert_float

    def to_nearest(values, source, target, rounding):
        """To bfloat16 by adding half a unit to the bits, and the bit that makes a tie even."""
        if (source, target) != (tl.float32, tl.bfloat16):
            return cut_off(values, source, target, rounding)
        bits = np.ascontiguousarray(values).view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)

    interpreter._convert_float = to_nearest


@pytest.fixture
def accelerated():
    """Fronts call Triton for tensors on the CPU."""
    from benchmarks.accelerator import stand_in

    before = stand_in.put(stand_in.by_triton())
    yield
    stand_in.put(before)
