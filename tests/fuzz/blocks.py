"""Blocks so small that a few tokens take the ways that thousands take."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from torch.nn.attention import flex_attention

from posenc.backends.strided import wide_blocks


@contextmanager
def small_blocks(number: int) -> Iterator[None]:
    """Within, blocks of sizes that a number says, and FlexAttention is not compiled."""
    chosen = {"FEWEST_ROWS": 1 + number % 4, "FEWEST_KEYS": 1 + number % 3,
              "MANY_ROWS": 4 + number % 5, "ROWS": 1 + number % 4}  # fmt: skip
    switch = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    with pytest.MonkeyPatch.context() as patched:
        if hasattr(flex_attention, switch):
            patched.setattr(flex_attention, switch, True)
        for name, size in chosen.items() if number % 2 else ():
            patched.setattr(wide_blocks, name, size)
        yield
