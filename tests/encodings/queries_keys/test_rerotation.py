"""A key cache turned on to another schedule, against encoding the keys anew."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Rotary, rerotate
from posenc.frequencies import NTK, DynamicNTK, Geometric, Linear, Llama3, YaRN
from posenc.positions import consecutive

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


def random(*shape: int, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@settings(max_examples=25, deadline=None)
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
        k = random(2, 3, 7, 20, dtype=dtype)
        cached = old.encode_keys(k, old.table(positions, dtype=dtype))
        want = new.encode_keys(k, new.table(positions, dtype=dtype))
        got = rerotate(cached, positions, old, new)
        torch.testing.assert_close(got, want, atol=slack, rtol=slack)


def test_in_place():
    old, new = Rotary(PLAIN), Rotary(YaRN(PLAIN, 16.0, 4096))
    keys, positions = random(1, 2, 5, 16), consecutive(5)
    want = rerotate(keys, positions, old, new)
    assert rerotate(keys, positions, old, new, out=keys) is keys
    assert torch.equal(keys, want)
