"""The bias of a rank's heads is the slice of the whole bias."""

import copy

import pytest
import torch

from posenc import ALiBi, CoPE, RelativeBias, T5Bias
from posenc.encodings.bias import bias_apart

DISTANCE = torch.arange(-3, 9)


@pytest.mark.parametrize("heads", [slice(2, 4), slice(None, None, 3), slice(-2, None), 5, -1])
@pytest.mark.parametrize("bias", [ALiBi(6), T5Bias(6), ALiBi(6) + T5Bias(6)], ids=["a", "t", "a+t"])
def test_a_part_is_the_slice_of_the_whole_bit_for_bit(bias, heads):
    part, rows = bias[heads], range(6)[heads]
    wanted = bias.profile(DISTANCE)[list(rows) if isinstance(rows, range) else [rows]]
    assert part.has_profile
    assert torch.equal(part.profile(DISTANCE), wanted)
    assert part.heads == len(wanted)
    assert torch.equal(part.table(range(3), range(4)), part.table(torch.arange(3), torch.arange(4)))


def test_parameters_are_those_of_the_whole():
    bias = T5Bias(4)
    part = bias[1:3]
    assert [name for name, _ in part.named_parameters()] == ["of.weight"]
    assert part.of.weight is bias.weight
    part.profile(DISTANCE).sum().backward()
    assert bias.weight.grad[:, [0, 3]].count_nonzero() == 0
    assert bias.weight.grad[:, 1:3].count_nonzero() > 0
    assert copy.deepcopy(part).chosen == range(1, 3)


def test_what_cannot_be_cut_is_refused():
    for told, heads in (
        ("8:9", slice(8, 9)),
        ("3:1", slice(3, 1)),
        ("::-1", slice(None, None, -1)),
    ):
        with pytest.raises(IndexError, match=rf"bias\[{told}\] .* of 8 heads"):
            ALiBi(8)[heads]
    with pytest.raises(IndexError, match=r"bias\[8\] was asked of 8 heads"):
        ALiBi(8)[8]
    with pytest.raises(TypeError, match="not subscriptable"):
        CoPE(8, 4, 4)[2:4]


def test_heads_apart_have_the_slopes_that_they_had():
    """Also of a bias whose slopes were not the usual ones, which are told, not computed anew."""
    whole = ALiBi(8, alibi_bias_max=4.0)
    part = bias_apart(whole, slice(2, 4))
    assert part.slopes == whole.slopes[2:4]


def test_a_class_that_derives_from_one_says_its_heads_itself():
    """It may count them: of heads 2 and 3 apart, head 2 would be taken for head 0."""

    class Louder(T5Bias):
        def profile(self, distance, *, dtype=None):
            profile = super().profile(distance, dtype=dtype)
            return profile * torch.arange(1, self.heads + 1).view(-1, *[1] * (profile.ndim - 1))

        table = RelativeBias.table

    assert bias_apart(Louder(4), slice(2, 4)) is None
    assert bias_apart(T5Bias(4), slice(2, 4)) is not None
