"""What one call costs in own Python frames: exact, so a ceiling is a number and needs no clock.

Ceilings only go down. Change one in the commit that lowers its count.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

import posenc
from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias, attention
from posenc.kernels.operators import NATIVE
from posenc.transformer import Encoder, KeyValueCache

OURS = str(Path(posenc.__file__).parent)


def frames(call: Callable[[], object]) -> int:
    """Calls of functions in files of ours, with what is computed once known already."""
    call()
    call()
    count = 0

    def profile(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(OURS)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


def content(*shape: int) -> Tensor:
    return torch.zeros(shape)


def summed() -> Callable[[], object]:
    return partial(Sinusoidal(64).eval(), content(1, 8, 64))


def one_token() -> Callable[[], object]:
    q, k, rotary = content(1, 32, 1, 128), content(1, 8, 1, 128), Rotary(128)
    kept, place = rotary.table(torch.arange(2048)), torch.tensor([[100]])
    return partial(rotary.encode_both, q, k, kept, place, out=(q, k))


def rotated() -> Callable[[], object]:
    x = content(1, 8, 16, 64)
    return partial(Rotary(64), x, x)


def attended(positional: Positional | None) -> Callable[[], object]:
    x = content(1, 8, 16, 64)
    return partial(attention, x, x, x, positional=positional, is_causal=True)


def decoded() -> Callable[[], object]:
    positional = Positional(queries_keys=Rotary(16))
    encoder = Encoder(64, 4, 12, positional=positional, is_causal=True).eval()
    cache = KeyValueCache()
    encoder(content(1, 40, 64), cache=cache)
    return partial(encoder, content(1, 1, 64), cache=cache)


CALLS = {
    "Sinusoidal(x)": (summed, 21),
    "Rotary.encode_both, one token in place": (one_token, 3),
    "Rotary(q, k)": (rotated, 12),
    "attention": (partial(attended, None), 21),
    "attention, rotary": (partial(attended, Positional(queries_keys=Rotary(64))), 44),
    "attention, ALiBi": (partial(attended, Positional(scores=ALiBi(8))), 38),
    "attention, T5": (partial(attended, Positional(scores=T5Bias(8))), 40),
    "Encoder of 12 blocks, one step": (decoded, 270),
}


@pytest.mark.skipif(not NATIVE, reason="without native kernels other functions run")
@pytest.mark.parametrize("name", CALLS)
@torch.no_grad()
def test_no_call_takes_more_frames(name):
    prepared, most = CALLS[name]
    assert frames(prepared()) <= most
