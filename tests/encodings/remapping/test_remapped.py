"""Distances of Self-Extend, ReRoPE and dual chunk attention, against their definitions in loops."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import DualChunk, ReRoPE, SelfExtend
from posenc.positions import consecutive


def grouped(p: int, n: int, g: int, w: int) -> int:
    """The authors' code of Self-Extend: positions of both kinds of attention, and which is used."""
    near, far = p - n, (p // g + w - w // g) - n // g
    return near if near < w else far


def chunked(p: int, n: int, c: int, local: int) -> int:
    """The authors' code of dual chunk attention: its tables of positions, looked up."""
    step = c - local
    intra, keys = list(range(step)), list(range(step))
    successive = [min(i + step, c) for i in range(step)]
    if p // step == n // step:
        return intra[p % step] - keys[n % step]
    row = p % step if p // step == n // step + 1 else step - 1
    return successive[row] - keys[n % step]


def by_loop(rule, length: int, *arguments: int) -> torch.Tensor:
    pairs = [[rule(p, n, *arguments) if n <= p else p - n for n in range(length)]
             for p in range(length)]  # fmt: skip
    return torch.tensor(pairs)


@given(st.integers(1, 9), st.integers(1, 20), st.integers(1, 60))
def test_self_extend_is_the_authors_code(group, window, length):
    distance = SelfExtend(group, window).distance(consecutive(length), consecutive(length))
    assert torch.equal(distance, by_loop(grouped, length, group, window))


@given(st.integers(1, 20), st.sampled_from([None, 1, 2, 9]), st.integers(1, 60))
def test_rerope_cuts_distances_off_or_goes_on_slowly(window, leak, length):
    """The author's code rotates by (p + w(k − 1) − n) / k, with k the scaling factor."""

    def meant(p: int, n: int) -> int:
        if p - n < window:
            return p - n
        return window if leak is None else (p + window * (leak - 1) - n) // leak

    distance = ReRoPE(window, leak).distance(range(length), range(length))
    assert torch.equal(distance, by_loop(meant, length))


@given(st.integers(2, 20), st.data(), st.integers(1, 90))
def test_dual_chunk_is_the_authors_code(chunk, data, length):
    local = data.draw(st.integers(1, chunk - 1))
    distance = DualChunk(chunk, local).distance(consecutive(length), consecutive(length)).tril()
    assert torch.equal(distance, by_loop(chunked, length, chunk, local).tril())
