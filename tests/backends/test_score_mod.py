"""Biases as functions for FlexAttention, which a caller hands to it: of their own tokens alone."""

import pytest
import torch

from posenc import FIRE, ALiBi
from posenc.backends import score_mod

HERE, AT = torch.arange(100), torch.tensor([0])


@pytest.mark.parametrize("bias", [ALiBi(1), FIRE(1)], ids=["by a profile", "by a table"])
def test_rows_of_another_batch(bias):
    """They would go by the positions of the first rows again."""
    here = torch.stack([HERE, HERE + 5])
    add = score_mod(bias, here, here)
    add(torch.zeros(1), AT + 1, AT, AT, AT)
    with pytest.raises(IndexError):
        add(torch.zeros(1), AT + 2, AT, AT, AT)
    shared = score_mod(bias, HERE, HERE)
    got, want = (shared(torch.zeros(1), AT + row, AT, AT + 7, AT) for row in (6, 0))
    assert torch.equal(got, want)
