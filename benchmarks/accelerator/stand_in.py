"""The CPU in the place of a card, where Triton's interpreter runs the kernels."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from posenc.kernels import operators
from posenc.kernels.addition import front as addition
from posenc.kernels.rotary import front as rotary
from posenc.kernels.sincos import front as sincos

Kernels = dict[tuple[Any, str], Any]
"""What fronts call, by module and name."""

BEFORE: Kernels = {}


def by_triton() -> Kernels:
    """The launchers of Triton, which torch would choose for tensors on a card."""
    sums = {form: addition._by_triton(form) for form in addition.OPERATORS}
    return {
        (operators, "NATIVE"): True,
        (rotary, "OPERATORS"): {key: rotary._by_triton(*key) for key in rotary.OPERATORS},
        (rotary, "ROTARY_BY"): rotary._rotary_by_triton,
        (addition, "OPERATORS"): sums,
        (sincos, "FILL"): sincos._by_triton,
    }


def put(kernels: Kernels) -> Kernels:
    """Let fronts call these; what they called before is returned."""
    before = {(module, name): getattr(module, name) for module, name in kernels}
    for (module, name), kernel in kernels.items():
        setattr(module, name, kernel)
    return before


def pose_as_an_accelerator() -> None:
    """Let fronts call Triton for tensors on the CPU."""
    BEFORE.update(put(by_triton()))


@contextmanager
def reference() -> Iterator[None]:
    """What is computed on the CPU in here, is computed by C, or by torch's own operations."""
    posing = put(BEFORE)
    try:
        yield
    finally:
        put(posing)


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
