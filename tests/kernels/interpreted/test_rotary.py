"""The rotation in Triton gives the bits of the reference, whatever the shape and the memory."""

from itertools import product

import pytest
import torch

from posenc.kernels.rotary import reference
from posenc.kernels.rotary import triton as rotary
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.triton import rotate, rotate_heads

DTYPES = {
    torch.float32: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float64: torch.float64,
}
ROTARY_LAYOUTS = [RotaryLayout(*flags) for flags in product([False, True], repeat=4)]


def expected(x, table, layout, positions=None):
    return reference.rotate_heads(
        x,
        table,
        positions,
        pairing=layout.pairing,
        rotated=layout.rotated,
        heads_first=layout.heads_first,
        conjugate=layout.conjugate,
    )


def heads(layout, count, width, dtype=torch.float32):
    shape = (2, count, 3, width) if layout.heads_first else (2, 3, count, width)
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ROTARY_LAYOUTS, ids=str)
@pytest.mark.parametrize("rest", [0, 5])
def test_the_bits_are_those_of_the_reference(memory, layout, dtype, rest):
    q, k = (heads(layout, count, 10 + rest, dtype) for count in (5, 2))
    table, positions = memory.table(9, pairs=5, dtype=DTYPES[dtype]), torch.randint(9, (2, 3))
    want = [expected(x, table, layout, positions) for x in (q, k)]
    for made in (
        rotate_heads((q, k), table, positions, layout),
        rotate_heads((q, k), table, positions, layout, (torch.zeros_like(q), torch.zeros_like(k))),
        rotate_heads((q, k), table, positions, layout, (q, k)),
    ):
        assert all(map(torch.equal, made, want))
    assert torch.equal(q, want[0])


@pytest.mark.parametrize("laid", ["transposed", "sliced", "unaligned", "expanded"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_memory_may_lie_in_any_order(memory, laid, interleaved):
    layout = RotaryLayout(interleaved)
    x = memory(torch.randn(2, 3, 4, 12), laid)
    table = memory.table(2, 4, pairs=5)
    want = expected(x, table, layout)
    (made,) = rotate_heads((x,), table, None, layout)
    assert made.is_contiguous()
    assert torch.equal(made, want)
    room = memory(torch.zeros_like(want), "sliced")
    rotate_heads((x,), table, None, layout, (room,))
    assert torch.equal(room, want)


def test_many_heads_are_rotated_in_groups(memory, monkeypatch):
    monkeypatch.setattr(rotary, "PAIRS_AT_ONCE", 16)
    x, table = torch.randn(1, 7, 2, 10), memory.table(2, pairs=4)
    assert torch.equal(
        rotate_heads((x,), table, None, RotaryLayout())[0], expected(x, table, RotaryLayout())
    )


def test_queries_and_keys_may_share_a_buffer(memory):
    joined, table = torch.randn(1, 4, 6, 8), memory.table(4, pairs=4)
    q, k = joined[:, :, :4], joined[:, :, 4:]
    layout = RotaryLayout(heads_first=False)
    want = [expected(x, table, layout) for x in (q, k)]
    rotate_heads((q, k), table, None, layout, (q, k))
    assert torch.equal(torch.cat(want, dim=2), joined)


def test_cosines_of_every_head(memory):
    x, table = torch.randn(2, 3, 4, 10), memory.table(3, 4, pairs=5)
    cos, sin = table.unbind(-2)
    for interleaved, name in ((False, "half"), (True, "interleaved")):
        made = rotate(x, cos, sin, RotaryLayout(interleaved))
        assert torch.equal(made, reference.rotate(x, cos, sin, pairing=name))


def test_a_position_outside_of_the_table_makes_its_token_nan(memory):
    x, table = torch.ones(1, 2, 4, 6), memory.table(5, pairs=2)
    (made,) = rotate_heads((x,), table, torch.tensor([0, -1, 5, 2**62]), RotaryLayout())
    assert made[..., 0, :].isfinite().all()
    assert made[..., 1:, :4].isnan().all()
    assert (made[..., 4:] == 1).all()


def test_memory_that_is_shared_is_not_taken(memory):
    room, table = torch.zeros(1, 1, 9, 4), memory.table(8, pairs=2)
    assert rotate_heads((room[:, :, 1:],), table, None, RotaryLayout(), (room[:, :, :8],)) is None
    thin = torch.zeros(1, 1, 1, 4).expand(1, 1, 8, 4)
    assert rotate_heads((torch.ones(1, 1, 8, 4),), table, None, RotaryLayout(), (thin,)) is None
    assert (room == 0).all()


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)], ids=str)
def test_nothing_is_rotated_into_nothing(memory, shape):
    made = rotate_heads(
        (torch.empty(shape),), memory.table(shape[2], pairs=2), None, RotaryLayout()
    )
    assert made[0].shape == shape
