"""Which channels of a table are cosines and which are sines, as its maker says."""

import pytest
import torch

from posenc.numerics.columns import channels_of


@pytest.mark.parametrize(
    ("cosines", "sines"),
    [
        (range(1, 8, 2), range(0, 8, 2)),
        (range(0, 8, 2), range(1, 8, 2)),
        (range(4, 8), range(4)),
        (range(4), range(4, 8)),
        (range(1), range(1, 2)),
        (range(0), range(0)),
    ],
)
def test_channels_are_found_where_they_are(cosines, sines):
    table = torch.arange(3 * 9).view(3, 9)
    columns = channels_of(cosines, sines).of(table)
    assert torch.equal(columns.cos, table[:, list(cosines)])
    assert torch.equal(columns.sin, table[:, list(sines)])
    columns.cos.fill_(-1)
    assert int((table == -1).sum()) == 3 * len(cosines)
