"""Axial rotary encodings of image and video generators, against the modules of diffusers.

Theirs are float32 at the end, some of them all along; ours is exact. So a bound is what their
roundings of frequencies, angles, cosines and products can amount to.
"""

from fractions import Fraction

import pytest
import torch
from diffusers.models.embeddings import apply_rotary_emb, get_3d_rotary_pos_embed
from diffusers.models.transformers import (
    transformer_flux,
    transformer_flux2,
    transformer_hunyuan_video,
    transformer_ltx,
    transformer_ltx2,
    transformer_minimax_h3,
    transformer_qwenimage,
    transformer_wan,
)
from tests.encodings.content import random
from torch import Tensor

from posenc import AxialRotary, LTXRotary
from posenc.positions import Coordinates, grid

ULP = 2.0**-24


def agree(encoding: AxialRotary, positions: Tensor, theirs: tuple[Tensor, Tensor], angle: float):
    """Rotated queries, and their products, within what theirs rounds; ``angle`` is its largest."""
    q, k = random(2, 1, 2, len(positions), encoding.head_dim)
    wanted = [apply_rotary_emb(x, theirs) for x in (q, k)]
    got = encoding(q, k, positions)
    bound = 2 * max(x.abs().max().item() for x in (q, k)) * (5 * angle + 3) * ULP
    for ours, want in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, want, atol=bound, rtol=0)
    scores, want = (queries @ keys.mT for queries, keys in (got, wanted))
    each = 2 * bound * max(x.abs().sum(-1).max().item() for x in (q, k))
    torch.testing.assert_close(scores, want, atol=each, rtol=0)


@pytest.mark.parametrize("start", [0, 9000])
def test_flux(start):
    """Image tokens at (0, y, x); text tokens all at 0."""
    image = torch.nn.functional.pad(grid(5, 7) + start, (1, 0))
    positions = torch.cat((torch.zeros(4, 3, dtype=torch.int64), image))
    theirs = transformer_flux.FluxPosEmbed(10_000, [16, 56, 56])(positions)
    # Frequencies and angles are float64, so nothing grows with the position.
    agree(AxialRotary(128, form="flux"), positions, theirs, angle=0)


@pytest.mark.parametrize("start", [0, 9000])
def test_flux2(start):
    """Four axes: reference image, row, column, token of the text."""
    positions = grid(2, 3, 4, 2) * torch.tensor([10, 1, 1, 1]) + start
    theirs = transformer_flux2.Flux2PosEmbed(2000, [32, 32, 32, 32])(positions)
    agree(AxialRotary(128, form="flux2"), positions, theirs, angle=0)


@pytest.mark.parametrize("head_dim", [128, 96, 40])
def test_wan(head_dim):
    module = transformer_wan.WanRotaryPosEmbed(head_dim, (1, 2, 2), 64)
    cos, sin = module(torch.zeros(1, 1, 3, 2 * 5, 2 * 40))
    encoding = AxialRotary(head_dim, form="wan")
    assert encoding.split == (module.t_dim, module.h_dim, module.w_dim)
    agree(encoding, grid(3, 5, 40), (cos[0, :, 0], sin[0, :, 0]), angle=0)


def test_hunyuan_video():
    module = transformer_hunyuan_video.HunyuanVideoRotaryPosEmbed(2, 1, [16, 56, 56], 256.0)
    theirs = module(torch.zeros(1, 1, 3, 2 * 4, 2 * 50))
    agree(AxialRotary(128, form="hunyuan_video"), grid(3, 4, 50), theirs, angle=50)


@pytest.mark.parametrize("scaled", [True, False])
def test_qwen_image(scaled):
    """Rows and columns about the middle, text along the diagonal from where the image ends."""
    module = transformer_qwenimage.QwenEmbedRope(10_000, [16, 56, 56], scale_rope=scaled)
    image, text = module([(1, 5, 8)], max_txt_seq_len=6, device=torch.device("cpu"))
    middle = torch.tensor([0, 5 - 5 // 2, 8 - 8 // 2]) if scaled else 0
    last = max(5 // 2, 8 // 2) if scaled else 8
    positions = torch.cat((grid(1, 5, 8) - middle, last + torch.arange(6)[:, None].expand(-1, 3)))
    whole = torch.cat((image, text)).resolve_conj()
    theirs = tuple(part.repeat_interleave(2, dim=-1) for part in (whole.real, whole.imag))
    agree(AxialRotary(128, form="qwen_image"), positions, theirs, angle=14)


def test_cogvideox():
    theirs = get_3d_rotary_pos_embed(64, ((0, 0), (5, 50)), (5, 50), 3)
    agree(AxialRotary(64, form="cogvideox"), grid(3, 5, 50), theirs, angle=50)


@pytest.mark.parametrize(("heads", "head_dim"), [(4, 16), (2, 22), (3, 12)])
def test_ltx(heads, head_dim):
    """Their frequencies run over all heads; inner widths of 64, 44 and 36 leave 4, 2 and 0."""
    inner = heads * head_dim
    module = transformer_ltx.LTXVideoRotaryPosEmbed(inner, theta=100.0)
    scale = (torch.tensor([8 / 25]), 32, 32)
    theirs = module(torch.zeros(1, 1), 3, 4, 5, rope_interpolation_scale=scale)
    encoding = LTXRotary(head_dim, heads, base=100.0, heads_first=False)
    q = random(1, 60, inner)
    want = transformer_ltx.apply_rotary_emb(q, theirs).unflatten(-1, (heads, head_dim))
    got = encoding.encode_queries(q.unflatten(-1, (heads, -1)), encoding.table(grid(3, 4, 5)))
    # Angles up to 100 · π/2, of coordinates that are rounded on their way.
    bound = 2 * q.abs().max().item() * (8 * 158 + 3) * ULP
    torch.testing.assert_close(got, want, atol=bound, rtol=0)


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
def test_ltx2(pairing):
    """Seconds at the middle of each patch, the first frame alone: in halves of 1/24 second."""
    heads, head_dim = 4, 16
    module = transformer_ltx2.LTX2AudioVideoRotaryPosEmbed(
        heads * head_dim, theta=100.0, num_attention_heads=heads,
        rope_type="split" if pairing == "half" else "interleaved",
    )  # fmt: skip
    coordinates = module.prepare_video_coords(1, 3, 4, 5, torch.device("cpu"), fps=24.0)
    theirs = module(coordinates)
    t, h, w = grid(3, 4, 5).unbind(-1)
    first, last = ((8 * each - 7).clamp(min=0) for each in (t, t + 1))
    positions = torch.stack((first + last, 2 * h + 1, 2 * w + 1), dim=-1)
    sizes = (20 * 24 * 2, Fraction(2048, 16), Fraction(2048, 16))
    encoding = LTXRotary(head_dim, heads, sizes, 100.0, pairing=pairing)
    q = random(1, 60, heads * head_dim)
    if pairing == "half":
        want = transformer_ltx2.apply_split_rotary_emb(q, theirs)
    else:
        want = transformer_ltx2.apply_interleaved_rotary_emb(q, theirs)
    split = q.unflatten(-1, (heads, -1)).transpose(1, 2).contiguous()
    got = encoding.encode_queries(split, encoding.table(positions)).transpose(1, 2).flatten(2)
    # The same in seconds and pixels, as coordinates of these very numbers.
    seconds = Coordinates.stack(
        [Coordinates(positions[:, 0], scale=Fraction(1, 48))]
        + [Coordinates(positions[:, axis] * 16) for axis in (1, 2)],
        dim=-1,
    )
    in_seconds = LTXRotary(head_dim, heads, (20, 2048, 2048), 100.0, pairing=pairing)
    assert torch.equal(in_seconds.table(seconds), encoding.table(positions))
    bound = 2 * q.abs().max().item() * (8 * 158 + 3) * ULP
    torch.testing.assert_close(got, want, atol=bound, rtol=0)


def test_minimax_h3():
    """Thirds along time and reals along rows and columns; 32 of 128 channels are left alone."""
    thirds = Coordinates(torch.tensor([0, 5, 25, 45, 65, 85]), scale=Fraction(1, 3)) + 7
    rows = Coordinates(random(2, 6).double() * 16)
    positions = Coordinates.stack([thirds, *(rows[axis] for axis in range(2))], dim=-1)
    cos, sin = transformer_minimax_h3.MiniMaxH3RotaryPosEmbed()(positions.floats())
    q = random(1, 2, 6, 128)
    want = transformer_minimax_h3._apply_rotary_emb(q.transpose(1, 2), cos, sin).transpose(1, 2)
    encoding = AxialRotary(128, form="minimax_h3")
    got = encoding.encode_queries(q, encoding.table(positions))
    bound = 2 * q.abs().max().item() * (5 * 70 + 3) * ULP
    torch.testing.assert_close(got, want, atol=bound, rtol=0)
    assert torch.equal(got[..., 96:], q[..., 96:])
