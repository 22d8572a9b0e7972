"""The CPU in the place of a card, where Triton's interpreter runs the kernels."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from posenc import guards


def pose_as_an_accelerator() -> None:
    """Let tensors on the CPU go where those of a card go; kernels in C are not there."""
    from posenc.kernels.addition import cpu as addition
    from posenc.kernels.rotary import cpu as rotary
    from posenc.kernels.sincos import cpu as sincos

    guards.ACCELERATORS = {"cpu"}
    for module in (addition, rotary, sincos):
        module._native = lambda: None
    rotary._native_with_tensors = lambda: None


@contextmanager
def reference() -> Iterator[None]:
    """What is computed on the CPU in here, is computed by torch's own operations or by C."""
    kept, guards.ACCELERATORS = guards.ACCELERATORS, guards.ACCELERATORS - {"cpu"}
    try:
        yield
    finally:
        guards.ACCELERATORS = kept


def facts(device: torch.device, tiny: bool) -> dict[str, str | int]:
    """What a reader needs to know of the device, beside ``harness.machine``."""
    from importlib.util import find_spec

    told: dict[str, str | int] = {"triton": "no"}
    if find_spec("triton") is not None:
        import triton

        told["triton"] = triton.__version__
    if tiny:
        return told | {"card": "none: Triton's interpreter on the CPU; no time means anything"}
    card = torch.cuda.get_device_properties(device)
    return told | {
        "memory": f"{card.total_memory / 2**30:.0f} GiB",
        "architecture": getattr(card, "gcnArchName", f"sm_{card.major}{card.minor}"),
        "toolkit": str(torch.version.hip or torch.version.cuda),
    }
