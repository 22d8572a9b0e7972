"""Operands of other tokens, pairs and kinds: refused, where torch would broadcast or cut them."""

import pytest
import torch

from posenc import Rotary
from posenc.kernels.addition.operator import scaled_sum
from posenc.kernels.embedding.operator import embedded
from posenc.kernels.rotary import reference
from posenc.kernels.rotary.operator import rotate

HEADS = torch.randn(2, 3, 5, 8)
COS, SIN = Rotary(8).table(range(5)).unbind(-2)
X, TABLE, WEIGHT = torch.randn(2, 5, 8), torch.randn(5, 8), torch.randn(6, 8)


@pytest.mark.parametrize("turned", [rotate, reference.rotate], ids=["kernel", "reference"])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("x", "cos", "sin", "told"),
    [
        (HEADS, COS, SIN[:, :1], r"cos has shape \(5, 4\) and sin \(5, 1\)"),
        (HEADS, COS[:, :1], SIN, r"cos has shape \(5, 1\) and sin \(5, 4\)"),
        (HEADS, COS, SIN[:1], r"and sin \(1, 4\)"),
        (HEADS, COS.expand(4, 1, 1, 5, 4), SIN.expand(4, 1, 1, 5, 4), "does not broadcast to it"),
        (HEADS[:, :, :1], COS, SIN, r"x has shape \(2, 3, 1, 8\) and cos \(5, 4\)"),
        (HEADS[:1], COS.expand(2, 1, 5, 4), SIN.expand(2, 1, 5, 4), "does not broadcast to it"),
        (HEADS[..., :6], COS, SIN, "6 channels wide; 4 pairs need 8"),
    ],
)
def test_rotations_by_the_table_of_others(turned, recorded, x, cos, sin, told):
    with pytest.raises(ValueError, match=told):
        turned(x.clone().requires_grad_(recorded), cos, sin)


@pytest.mark.parametrize("turned", [rotate, reference.rotate], ids=["kernel", "reference"])
def test_rotations_of_other_kinds(turned):
    with pytest.raises(TypeError, match=r"x, cos and sin are torch.int64"):
        turned(HEADS.long(), COS, SIN)
    with pytest.raises(TypeError, match=r"x, cos and sin are torch.float32, torch.int64"):
        turned(HEADS, COS.long(), SIN.long())
    with pytest.raises(ValueError, match="pairing is 'Half' and rotated 'prefix'"):
        turned(HEADS, COS, SIN, pairing="Half")
    with pytest.raises(ValueError, match="pairing is 'half' and rotated 'last'"):
        turned(HEADS, COS, SIN, rotated="last")


@pytest.mark.parametrize("recorded", [False, True])
def test_sums_that_would_outgrow_their_content(recorded):
    x = X.clone().requires_grad_(recorded)
    with pytest.raises(ValueError, match=r"rows \(4, 1, 5, 8\), which do not broadcast to it"):
        scaled_sum(x, TABLE.expand(4, 1, 5, 8))
    with pytest.raises(ValueError, match=r"\(2, 1, 8\) and the table's rows \(5, 8\)"):
        scaled_sum(x[:, :1], TABLE)
    with pytest.raises(ValueError, match=r"\(1, 5, 8\) and the table's rows \(2, 5, 8\)"):
        scaled_sum(x[:1], TABLE, torch.arange(5).expand(2, -1))
    with pytest.raises(ValueError, match="positions were given and no table"):
        scaled_sum(x, None, torch.arange(5))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: scaled_sum(x, TABLE),
        lambda x: scaled_sum(x, TABLE, dropout=1.0),
        lambda x: scaled_sum(x.to("meta"), TABLE.to("meta")),
        torch.func.vmap(lambda row: scaled_sum(row, TABLE)),
    ],
    ids=["eager", "all dropped", "meta", "vmap"],
)
def test_sums_of_whole_numbers(call):
    with pytest.raises(TypeError, match=r"x is torch.int64; sums with a table take floating"):
        call(X.long())


@pytest.mark.parametrize("dropout", [1.5, -0.1, True, float("nan"), "0.5"])
def test_what_is_no_probability(dropout):
    for call in (
        lambda: scaled_sum(X, TABLE, dropout=dropout),
        lambda: scaled_sum(X.clone().requires_grad_(), TABLE, dropout=dropout),
        lambda: embedded(torch.tensor([1]), WEIGHT, dropout=dropout),
    ):
        with pytest.raises(ValueError, match=r"dropout is .*; it must be a probability"):
            call()


def test_the_last_id_as_torch_counts_it():
    gradients = []
    for lookup in (embedded, torch.nn.functional.embedding):
        weight = WEIGHT.clone().requires_grad_()
        lookup(torch.tensor([5, 0]), weight, padding_idx=-1).sum().backward()
        gradients.append(weight.grad)
    assert torch.equal(*gradients)
    assert not gradients[0][5].any()
    for wrong in (6, -7, True):
        with pytest.raises(ValueError, match="it must be an id of a vocabulary of 6"):
            embedded(torch.tensor([1]), WEIGHT, padding_idx=wrong)
