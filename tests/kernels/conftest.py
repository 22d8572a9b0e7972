"""What the tests of kernels share: contents in every kind of memory, and every library."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import Tensor

from posenc.kernels import library as of
from posenc.kernels.library import library

LAYOUTS = ("contiguous", "transposed", "sliced", "unaligned", "expanded", "strided channels")

AVX2 = {"avx2", "fma", "f16c", "bmi2"}
NEEDS = {
    "default": set(),
    "avx2": AVX2,
    "avx512": AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
}
"""What a processor must have, as CMakeLists.txt compiles; the names are those of Linux."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a compiler there is nothing to compare; POSENC_REQUIRE_NATIVE makes that an error."""
    if library() is None:
        for item in items:
            if item.path.name.startswith("test_native"):
                item.add_marker(pytest.mark.skip(reason="no native library was built"))


def variants() -> list[str]:
    """The libraries that were built and that this processor runs, whichever torch would choose."""
    if sys.platform != "linux":
        return ["default"]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return [name for name in of.built() if NEEDS[name] <= set(flags)]


@pytest.fixture(scope="module", params=variants() or ["none"])
def variant(request):
    """Kernels in C of one library after the other; ``usefixtures`` it where they are compared."""
    chosen = of.built_for(request.param)
    folders = sorted(path.parent.name for path in Path(of.__file__).parent.glob("*/cpu.py"))
    modules = [import_module(f"posenc.kernels.{name}.cpu") for name in folders]
    for module in modules:
        module.library = lambda: chosen
    _forget(modules)
    yield request.param
    for module in modules:
        module.library = library
    _forget(modules)


def _forget(modules) -> None:
    for module in modules:
        for kept in vars(module).values():
            if hasattr(kept, "cache_clear") and kept is not library:
                kept.cache_clear()


class Memory:
    """Numbers ``[batch, a, b, width]``, laid out in many ways."""

    def __call__(self, values: Tensor, layout: str) -> Tensor:
        """``values`` again in other memory; ``expanded`` repeats the first row of the batch."""
        if layout == "transposed":
            return values.transpose(1, 2).contiguous().transpose(1, 2)
        if layout == "sliced":
            batch, a, b, width = values.shape
            room = values.new_full((batch, a + 2, b + 1, width + 3), 7.0)
            return room[:, 1 : a + 1, :b, 2 : width + 2].copy_(values)
        if layout == "unaligned":
            return values.new_empty(values.numel() + 1)[1:].view(values.shape).copy_(values)
        if layout == "expanded":
            return values[:1].clone().expand_as(values)
        if layout == "strided channels":
            room = values.new_empty(*values.shape[:-1], 2 * values.shape[-1])
            return room[..., ::2].copy_(values)
        return values.clone()

    def table(self, *shape: int, pairs: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """``[*shape, 2, pairs]`` of random angles, which leave content as large as it is."""
        angle = torch.rand(*shape, pairs, dtype=torch.float64) * 6.28
        return torch.stack((angle.cos(), angle.sin()), dim=-2).to(dtype)


@pytest.fixture(scope="session")
def memory() -> Memory:
    return Memory()
