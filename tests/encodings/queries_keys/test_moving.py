"""Keys moved, or turned on to another schedule, stand where they would have been encoded."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import AxialRotary, MultimodalRotary, Rotary, move_keys, rerotate
from posenc.frequencies import NTK, DynamicNTK, Geometric, Linear, Llama3, YaRN
from posenc.positions import consecutive, grid

YARN = YaRN(Geometric(8), factor=4.0, trained_length=64)
HERE = torch.tensor([0, 5, -3, 2**40, 2**62])
THERE = torch.tensor([1, 2**62, 10**9, -(2**41), 0])
POINTS = grid(2, 2, 2)
MOVED = POINTS * torch.tensor([100, -7, 3]) + torch.tensor([5, 0, 2**40])
MOVES = {
    "half": (Rotary(8), HERE, THERE),
    "prefix": (Rotary(Geometric(4), head_dim=8), HERE, THERE),
    "suffix": (Rotary(4, head_dim=8, rotated="suffix", pairing="interleaved"), HERE, THERE),
    "factor": (Rotary(YARN), HERE, THERE),
    "seq first": (Rotary(8, heads_first=False), HERE, THERE),
    "multimodal": (MultimodalRotary(Rotary(8), (2, 1, 1)), POINTS, MOVED),
    "interleaved": (MultimodalRotary(Rotary(YARN), (2, 1, 1), "interleaved"), POINTS, MOVED),
    "axial": (AxialRotary(12, form="wan"), POINTS, MOVED),
}
PLAIN = Geometric(16)
SCHEDULES = [
    PLAIN,
    Geometric(16, base=500_000.0),
    Linear(PLAIN, 4.0),
    NTK(PLAIN, 8.0),
    DynamicNTK(PLAIN, 2.0, 4096).at(9000),
    YaRN(PLAIN, 16.0, 4096),
    Llama3(Geometric(16, base=500_000.0)),
]


def keys(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("name", MOVES)
def test_they_are_what_encoding_them_there_gives(name):
    encoding, here, there = MOVES[name]
    seq = (3, len(here)) if encoding.heads_first else (len(here), 3)
    k = keys(2, *seq, encoding.head_dim)
    cached, want = (
        encoding.encode_keys(k, encoding.table(at, dtype=torch.float64)) for at in (here, there)
    )
    assert torch.allclose(move_keys(cached, here, there, encoding), want, atol=1e-14, rtol=0)
    # Encoding by the difference, as is often done, would square the factor.
    assert torch.equal(move_keys(cached, here, here, encoding), cached)


@given(
    before=st.sampled_from(SCHEDULES),
    after=st.sampled_from(SCHEDULES),
    pairing=st.sampled_from(["half", "interleaved"]),
    rotated=st.sampled_from(["prefix", "suffix"]),
    start=st.sampled_from([0, 4096, 10**6, 2**40, 2**62]),
)
def test_rerotating_is_encoding_anew(before, after, pairing, rotated, start):
    old = Rotary(before, head_dim=20, pairing=pairing, rotated=rotated)
    new, positions = old.with_frequencies(after), consecutive(7, start=start)
    for dtype, slack in ((torch.float64, 4e-15), (torch.float32, 1.5e-6)):
        k = keys(2, 3, 7, 20).to(dtype)
        cached = old.encode_keys(k, old.table(positions, dtype=dtype))
        want = new.encode_keys(k, new.table(positions, dtype=dtype))
        torch.testing.assert_close(
            rerotate(cached, positions, old, new), want, atol=slack, rtol=slack
        )
        assert rerotate(cached, positions, old, new, out=cached) is cached
        torch.testing.assert_close(cached, want, atol=slack, rtol=slack)
