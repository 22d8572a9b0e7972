"""The reference of attention says what it does not apply."""

import pytest
import torch

from posenc import SHAPE, Positional, Randomized, Rotary
from posenc.testing.reference import reference_attention

X, HERE = torch.ones(1, 2, 3, 4), torch.arange(3)


def _of(positional):
    return reference_attention(X, X, X, positional=positional, q_positions=HERE, k_positions=HERE)


@pytest.mark.parametrize("remapping", [Randomized(100), SHAPE(100)], ids=["always", "training"])
def test_changes_of_positions_are_refused(remapping):
    positional = Positional(queries_keys=Rotary(4), positions=remapping)
    with pytest.raises(ValueError, match=r"changes positions, by .*positional\.remapped"):
        _of(positional)


def test_what_changes_positions_in_training_alone_is_none_in_evaluation():
    positional = Positional(queries_keys=Rotary(4), positions=SHAPE(100)).eval()
    assert torch.equal(_of(positional), _of(Positional(queries_keys=Rotary(4))))
