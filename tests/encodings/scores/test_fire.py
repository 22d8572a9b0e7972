"""FIRE against plain loops written from its paper."""

from math import log

import pytest
import torch

from posenc import FIRE

Q, K = torch.tensor([700, 3, 512, 40]), torch.tensor([0, 5, 700, 511, 2])


@pytest.mark.parametrize(("factor", "threshold"), [(1.0, 512), (-0.5, 512), (1.0, 30)])
def test_pair_by_pair(factor, threshold):
    torch.manual_seed(0)
    fire = FIRE(3, hidden=5, threshold=threshold).double()
    torch.nn.init.constant_(fire.factor, factor)
    table = fire.table(Q, K, dtype=torch.float64)
    c, first, second = fire.c.item(), fire.expand, fire.contract
    for i, q in enumerate(Q.tolist()):
        for j, k in enumerate(K.tolist()):
            near = log(abs(c * (q - k)) + 1)
            x = near / (log(abs(c * max(q, abs(factor * threshold))) + 1) + 1e-6)
            inner = [
                max(0.0, w * x + b)
                for w, b in zip(first.weight[:, 0].tolist(), first.bias.tolist(), strict=True)
            ]
            for h in range(3):
                meant = sum(w * x for w, x in zip(second.weight[h].tolist(), inner, strict=True))
                meant += second.bias[h].item()
                assert table[h, i, j].item() == pytest.approx(meant, rel=1e-12, abs=1e-13)


def test_its_argument_never_leaves_the_trained_range():
    """With a network that passes its argument on: from 0 at the query to 1 at the first key."""
    fire = FIRE(1, hidden=1)
    with torch.no_grad():
        for layer in (fire.expand, fire.contract):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    for q in (600, 10**5, 10**9):
        row = fire.table(torch.tensor([q]), torch.arange(0, q + 1, q // 100))[0, 0]
        assert row.amax() <= 1
        assert row[0].item() == pytest.approx(1.0, abs=1e-5)
        assert (row.diff() < 0).all()
    assert fire.table(torch.tensor([40]), torch.tensor([40])).item() == 0


def test_it_is_not_relative_and_says_so():
    fire = FIRE(2)
    near = fire.table(torch.tensor([100]), torch.tensor([90]))
    assert torch.equal(near, fire.table(torch.tensor([500]), torch.tensor([490])))  # below L
    assert not torch.equal(near, fire.table(torch.tensor([2000]), torch.tensor([1990])))
    assert not fire.is_relative
