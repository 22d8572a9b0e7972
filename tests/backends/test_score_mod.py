"""Biases as functions for FlexAttention, which a caller hands to it: of their own tokens alone."""

import pytest
import torch

from posenc import FIRE, ALiBi
from posenc.backends import score_mod
from posenc.backends.flex import mask_mod
from posenc.backends.specification import AttentionSpecification

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


def _read_by(function) -> list[torch.Tensor]:
    """The tensors that a function holds, and those that functions in it hold."""
    if isinstance(function, torch.Tensor):
        return [function]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    flat = [each for cell in cells for each in (cell if isinstance(cell, tuple) else (cell,))]
    return [tensor for each in flat for tensor in _read_by(each)]


def test_no_tensor_is_read_under_two_names():
    """torch's compiler has ended in an IndexError of its own over such a call after others."""
    here, ids = HERE.expand(2, -1), torch.zeros(2, 100, dtype=torch.int64)
    told = {"q_positions": here, "k_positions": here, "documents": ids, "q_documents": ids}
    spec = AttentionSpecification(
        2, 100, 100, is_causal=True, window=3, padding_mask=ids == 0, **told
    )
    held = _read_by(mask_mod(spec)) + _read_by(score_mod(ALiBi(1), spec.queries, spec.keys))
    assert len(held) > 6
    assert len({id(each) for each in held}) == len(held)
