"""The permutation between the two pairings: a bijection, and what public scripts do."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.kernels.rotary.reference import rotate
from posenc.numerics.pairing import (
    convert_channels,
    convert_fused,
    convert_projection,
    permutation,
    split,
)

OTHER = {"half": "interleaved", "interleaved": "half"}
WIDTHS = st.integers(1, 32).map(lambda half: 2 * half)


@given(width=WIDTHS, rest=st.integers(0, 9), rotated=st.sampled_from(["prefix", "suffix"]))
def test_one_way_undoes_the_other(width, rest, rotated):
    x = torch.arange(width + rest)
    for to, back in OTHER.items():
        there = convert_channels(x, to, rotated_dim=width, rotated=rotated)
        assert torch.equal(convert_channels(there, back, rotated_dim=width, rotated=rotated), x)
        assert sorted(permutation(width, to, head_dim=width + rest, rotated=rotated)) == x.tolist()


@given(width=WIDTHS)
def test_pairs_stay_together(width):
    x = torch.arange(width)
    for to, back in OTHER.items():
        for before, after in zip(split(x, back), split(convert_channels(x, to), to), strict=True):
            assert torch.equal(before, after)


def test_rotation_commutes_with_conversion_bit_for_bit():
    x, angles = torch.randn(3, 5, 12), torch.randn(5, 4)
    cos, sin = angles.cos(), angles.sin()
    for rotated in ("prefix", "suffix"):
        want = convert_channels(
            rotate(x, cos, sin, rotated=rotated), "interleaved", rotated_dim=8, rotated=rotated
        )
        other = convert_channels(x, "interleaved", rotated_dim=8, rotated=rotated)
        assert torch.equal(rotate(other, cos, sin, pairing="interleaved", rotated=rotated), want)


def test_metas_llama_weights_become_those_of_transformers():
    """The permutation in transformers' conversion script, written out."""
    heads, head_dim, width = 4, 8, 32
    weight = torch.randn(heads * head_dim, width)
    want = (
        weight.view(heads, head_dim // 2, 2, width).transpose(1, 2).reshape(heads * head_dim, width)
    )
    assert torch.equal(convert_projection(weight, "half", head_dim=head_dim), want)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
def test_fused_orders_hold_the_projections_alone(heads, kv_heads):
    q, k, v = (torch.randn(count * 8, 3) for count in (heads, kv_heads, kv_heads))
    converted = (
        convert_projection(q, "half", head_dim=8),
        convert_projection(k, "half", head_dim=8),
        v,
    )

    def concatenated(parts):
        return torch.cat(parts)

    def grouped(parts):
        each = [part.unflatten(0, (kv_heads, -1)) for part in parts]
        return torch.cat(each, dim=1).flatten(0, 1)

    for order, fuse in (("concatenated", concatenated), ("grouped", grouped)):
        got = convert_fused(
            fuse((q, k, v)), "half", heads=heads, kv_heads=kv_heads, head_dim=8, order=order
        )
        assert torch.equal(got, fuse(converted))
