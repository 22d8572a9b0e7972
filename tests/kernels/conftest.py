"""What the tests of kernels share: contents in every kind of memory."""

import pytest
import torch
from torch import Tensor

from posenc.kernels.library import library

LAYOUTS = ("contiguous", "transposed", "sliced", "unaligned", "expanded", "strided channels")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a compiler there is nothing to compare; POSENC_REQUIRE_NATIVE makes that an error."""
    if library() is None:
        for item in items:
            if item.path.name.startswith("test_native"):
                item.add_marker(pytest.mark.skip(reason="no native library was built"))


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
