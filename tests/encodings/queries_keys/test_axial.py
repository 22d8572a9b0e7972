"""Axial rotary encodings of any number of axes: forms of transformers, and freedoms of our own."""

from fractions import Fraction

import pytest
import torch
from tests.encodings.content import random
from torch import Tensor
from transformers import Gemma4VisionConfig, Llama4VisionConfig, VJEPA2Config
from transformers.models.gemma4 import modeling_gemma4 as gemma4
from transformers.models.llama4 import modeling_llama4 as llama4
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.vjepa2.modeling_vjepa2 import VJEPA2RopeAttention

from posenc import AxialForm, AxialRotary, Rotary, VJEPA2Rotary
from posenc.encodings.queries_keys.axial_forms import FORMS
from posenc.frequencies import NTK, Linear, YaRN
from posenc.positions import grid

ULP = 2.0**-24


def within_their_rounding(ours: Tensor, theirs: Tensor, angle: float) -> None:
    """Theirs rounds a frequency four times at most, and an angle, a cosine and a product once."""
    largest = theirs.abs().max().item()
    atol = 2 * largest * (5 * angle + 3) * ULP
    torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


def test_llama4_vision_counts_patches_from_one_and_does_not_turn_its_class_token():
    config = Llama4VisionConfig(
        hidden_size=64, num_attention_heads=2, image_size=28 * 5, patch_size=28,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )  # fmt: skip
    rotary = llama4.Llama4VisionRotaryEmbedding(config)
    q, k = random(1, 26, 2, 32), random(1, 26, 2, 32).flip(-1)
    theirs = llama4.vision_apply_rotary_emb(q, k, rotary(q))
    positions = torch.cat((grid(5, 5) + 1, torch.zeros(1, 2, dtype=torch.int64)))
    encoding = AxialRotary(32, form="llama4_vision", heads_first=False)
    for got, want in zip(encoding(q, k, positions), theirs, strict=True):
        within_their_rounding(got, want, angle=6)


@pytest.mark.parametrize("start", [0, 3000])
def test_qwen2_vl_vision(start):
    config = Qwen2VLVisionConfig(embed_dim=64, num_heads=2)
    rotary = qwen2_vl.Qwen2VLVisionRotaryEmbedding(config)
    positions = grid(5, 7) + start
    cos, sin = rotary(random(1), positions)
    q, k = random(35, 2, 32), random(35, 2, 32).flip(-1)
    theirs = qwen2_vl.apply_rotary_pos_emb_vision(q, k, cos, sin)
    encoding = AxialRotary(32, form="qwen2_vl", heads_first=False)
    for got, want in zip(encoding(q, k, positions), theirs, strict=True):
        within_their_rounding(got, want, angle=start + 7)


@pytest.mark.parametrize("start", [0, 3000])
def test_gemma4_vision_pairs_channels_within_the_block_of_an_axis(start):
    config = Gemma4VisionConfig(hidden_size=64, num_attention_heads=2, head_dim=32)
    assert config.rope_parameters["rope_theta"] == FORMS["gemma4_vision"].base
    positions = grid(5, 7) + start
    theirs_of = positions.flip(-1)[None]  # (x, y)
    cos, sin = gemma4.Gemma4VisionRotaryEmbedding(config)(random(1), theirs_of)
    q = random(1, 35, 2, 32)
    want = gemma4.apply_multidimensional_rope(q, cos, sin, theirs_of)
    encoding = AxialRotary(32, form="gemma4_vision", heads_first=False)
    within_their_rounding(
        encoding.encode_queries(q, encoding.table(positions)), want, angle=start + 7
    )


def bands_of_timm(grid_size: tuple[int, int], trained: tuple[int, int], width: int) -> Tensor:
    """EVA-02's angles as timm has them: float64, position / actual · trained, then bands."""
    bands = 1.0 / 10_000.0 ** (torch.arange(width).double() / width)
    along = [
        torch.arange(size).double() / size * reference
        for size, reference in zip(grid_size, trained, strict=True)
    ]
    points = torch.stack(torch.meshgrid(*along, indexing="ij"), dim=-1)
    return (points.unsqueeze(-1) * bands).flatten(-2).flatten(0, 1)


def test_eva02_rescales_a_larger_grid_to_the_trained_one():
    angles = bands_of_timm((9, 6), (4, 4), 8)
    stretch = (Fraction(9, 4), Fraction(6, 4))
    encoding = AxialRotary(32, form="eva02", stretch=stretch)
    table = encoding.table(grid(9, 6), dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], angles.cos(), atol=1e-14, rtol=0)
    torch.testing.assert_close(table[:, 1], angles.sin(), atol=1e-14, rtol=0)
    # Their x · cos + rot(x) · sin, rot(x) = (−x_1, x_0, −x_3, x_2, …), each angle twice.
    q = random(1, 1, 54, 32).double()
    cos, sin = (each.repeat_interleave(2, -1) for each in (angles.cos(), angles.sin()))
    rot = torch.stack((-q[..., 1::2], q[..., ::2]), -1).reshape(q.shape)
    torch.testing.assert_close(encoding.encode_queries(q, table), q * cos + rot * sin)


def test_vjepa2_is_transformers():
    config = VJEPA2Config(crop_size=48, patch_size=16, frames_per_clip=8, tubelet_size=2)
    attention = VJEPA2RopeAttention(config, hidden_size=32, num_attention_heads=2)
    q = random(1, 2, 36, 16)
    want = attention.apply_rotary_embeddings(q, attention.get_position_ids(q.transpose(1, 2)))
    encoding = VJEPA2Rotary(16)
    got = encoding.encode_queries(q, encoding.table(grid(4, 3, 3)))
    within_their_rounding(got, want, angle=4)
    assert torch.equal(got[..., 12:], q[..., 12:])


def test_a_form_of_ones_own():
    """Three axes of 8, 4 and 4 channels, dealt out in turn, the last axis first: w t h, t, t, t."""
    form = AxialForm(
        "mine", "thw", "", (8, 4, 4), (10.0, 20.0, 30.0), "half", order="wth",
        arrangement="interleaved",
    )  # fmt: skip
    encoding = AxialRotary(20, form=form)
    assert encoding.sincos.axes == (2, 0, 1, 2, 0, 1, 0, 0)
    at = encoding.table(torch.tensor([[1, 100, 10_000]]), dtype=torch.float64)[0]
    angles = [1e4, 1.0, 100.0, 1e4 / 30**0.5, 10**-0.25, 100 / 20**0.5, 10**-0.5, 10**-0.75]
    want = torch.tensor(angles, dtype=torch.float64)
    torch.testing.assert_close(at, torch.stack((want.cos(), want.sin())), atol=1e-11, rtol=0)
    q = random(1, 1, 1, 20)
    got = encoding.encode_queries(q, encoding.table(torch.tensor([[5, 6, 7]])))
    assert torch.equal(got[..., 16:], q[..., 16:])
    assert (got[..., :16] != q[..., :16]).all()


def test_each_axis_has_its_own_schedule():
    """NTK along time, YaRN along height with its factor on cos and sin, width as it was."""
    wan = AxialRotary(96, form="wan")
    time, height, width = wan.schedules
    changed = (NTK(time, 2.0), YaRN(height, 4.0, 64), Linear(width, 3))
    longer, positions = wan.with_schedules(changed), grid(3, 4, 5) + 1000
    got = longer.table(positions).split([16, 16, 16], dim=-1)
    for axis, schedule in enumerate(changed):
        alone = Rotary(schedule).table(positions[:, axis])
        assert torch.equal(got[axis], alone)
    assert not torch.equal(longer.table(positions), wan.table(positions))
