"""Triton refuses what C and torch refuse: the words come from what all of them fall back to."""

import pytest
import torch

from posenc import Rotary
from posenc.kernels.addition.operator import scaled_sum
from posenc.kernels.embedding.operator import embedded

pytestmark = pytest.mark.usefixtures("accelerated")

ENCODING = Rotary(4)
SHARED = "out shares memory with {}, which would be overwritten"


@pytest.fixture
def table():
    return ENCODING.table(torch.arange(24))


def test_nothing_is_written_over_what_is_read(table):
    x, kept, positions = torch.randn(1, 2, 3, 4), table.clone(), torch.arange(24)
    with pytest.raises(ValueError, match=SHARED.format("table")):
        ENCODING.encode_queries(x, table[:3], out=table.view(-1)[:24].view(1, 2, 3, 4))
    out = positions.view(torch.float32)[:24].view(1, 2, 3, 4)
    with pytest.raises(ValueError, match=SHARED.format("positions")):
        ENCODING.encode_both(x, x, table, positions[:3], out=(out, torch.empty_like(x)))
    with pytest.raises(ValueError, match=SHARED.format("table")):
        scaled_sum(torch.ones(3, 4), table[:3].view(3, 4), out=table[:3].view(3, 4))
    with pytest.raises(ValueError, match=SHARED.format("weight")):
        embedded(positions[:3], table.view(24, 4), out=table[:3].view(3, 4))
    with pytest.raises(ValueError, match=SHARED.format("the other out")):
        ENCODING.encode_both(x, x.clone(), table[:3], out=(x, x))
    with pytest.raises(ValueError, match=SHARED.format("positions")):
        Rotary(2).table(positions, out=positions.view(torch.float32)[:48].view(24, 2, 1))
    assert torch.equal(table, kept)
    assert torch.equal(positions, torch.arange(24))


def test_nothing_is_written_where_elements_share_a_place(table):
    thin = torch.zeros(1, 1, 3, 4).expand(1, 2, 3, 4)
    for call in (
        lambda: ENCODING.encode_queries(torch.ones(1, 2, 3, 4), table[:3], out=thin),
        lambda: scaled_sum(torch.ones(1, 2, 3, 4), table[:3].view(3, 4), out=thin),
        lambda: ENCODING.table(torch.arange(3), out=torch.zeros(3, 2, 1).expand(3, 2, 2)),
    ):
        with pytest.raises(ValueError, match="some of its elements are in one place"):
            call()
    assert not thin.any()


def test_results_may_go_to_what_is_no_longer_read(table):
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)
    want = ENCODING.encode_both(q, k, table[:3])
    crossed = q.clone(), k.clone()
    made = ENCODING.encode_both(*crossed, table[:3], out=crossed[::-1])
    assert all(map(torch.equal, made, want))


def test_what_has_no_memory_is_refused_and_torchs_zeros_are_zeros(table):
    freed, x = torch.ones(3, 2, 2), torch.randn(1, 2, 3, 4)
    freed.untyped_storage().resize_(0)
    for call in (
        lambda: ENCODING.encode_queries(x, freed),
        lambda: scaled_sum(x, freed.view(3, 4)),
    ):
        with pytest.raises(ValueError, match=r"table has shape .* and no memory"):
            call()
    with pytest.raises(ValueError, match=r"out has shape .* and no memory"):
        ENCODING.table(torch.arange(3), out=freed)
    zeros = torch._efficientzerotensor((3, 2, 2))
    assert not ENCODING.encode_queries(x, zeros).any()
    assert torch.equal(scaled_sum(x, zeros.view(3, 4)), x)
