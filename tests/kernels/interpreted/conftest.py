"""Triton kernels run here by its interpreter, on the CPU; ``test_triton.py`` sets that up.

How a kernel is run is decided once in a process, so these tests have one of their own.
"""

import os

import pytest
import torch

if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore_glob = ["*.py"]
else:
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    cut_off = interpreter._convert_float

    def converted(values, source, target, rounding):
        """The interpreter cuts bfloat16 off where processors round it."""
        if source == tl.float32 and target == tl.bfloat16:
            narrow = torch.from_numpy(np.array(values)).to(torch.bfloat16)
            return narrow.view(torch.int16).numpy().view(np.uint16)
        return cut_off(values, source, target, rounding)

    interpreter._convert_float = converted


@pytest.fixture
def accelerated(monkeypatch):
    """The CPU passes for an accelerator, and the kernels in C are not there."""
    from posenc.kernels import accelerator
    from posenc.kernels.addition import cpu as addition
    from posenc.kernels.rotary import cpu as rotary
    from posenc.kernels.sincos import cpu as sincos

    monkeypatch.setattr(accelerator, "DEVICES", {"cpu"})
    for module in (addition, rotary, sincos):
        monkeypatch.setattr(module, "_native", lambda: None)
    monkeypatch.setattr(rotary, "_native_with_tensors", lambda: None)
