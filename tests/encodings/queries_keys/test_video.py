"""Rotary encodings of video among text: which pairs or heads follow an axis, where tokens stand."""

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from posenc import MHRoPE, MultimodalRotary, Rotary
from posenc.frequencies import Proportional
from posenc.positions import consecutive, diagonal_video, symmetric_video


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def scattered(*shape: int) -> Tensor:
    return torch.randint(300, shape, generator=torch.Generator().manual_seed(0))


def angles_of(rotary: Rotary, positions: Tensor) -> Tensor:
    """[axes, seq, pairs]: positions times frequencies along each axis, in float64."""
    speeds = 2 * torch.pi / torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    return positions.mT.double()[..., None] * speeds


def test_videorope_gives_the_slowest_pairs_to_time():
    """The authors' loop: 48 pairs of rows and columns by turns, then 16 of time."""
    rotary, positions = Rotary(128), scattered(9, 3)
    angles = angles_of(rotary, positions)
    parts = [angles[1 if pair % 2 == 0 else 2][:, pair] for pair in range(48)]
    parts += [angles[0][:, pair] for pair in range(48, 64)]
    wanted = torch.stack(parts, dim=-1)
    encoding = MultimodalRotary(rotary, (16, 24, 24), (1, 2) * 24 + (0,) * 16)
    table = encoding.table(positions, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], wanted.cos(), atol=1e-11, rtol=0)
    torch.testing.assert_close(table[:, 1], wanted.sin(), atol=1e-11, rtol=0)


def test_mm_rope_repeats_a_pattern_of_eight_pairs():
    rotary, positions = Rotary(32), scattered(9, 3)
    pattern = torch.tensor((0, 0, 1, 2, 1, 2, 1, 2))
    which = pattern[torch.arange(16) % 8]
    wanted = angles_of(rotary, positions)[which, :, torch.arange(16)].mT
    encoding = MultimodalRotary(rotary, (4, 6, 6), which.tolist())
    table = encoding.table(positions, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], wanted.cos(), atol=1e-11, rtol=0)


def test_vrope_deals_four_coordinates_out_in_turn():
    """The authors' position_ids: pair i takes coordinate i mod 4."""
    rotary, positions = Rotary(32), symmetric_video(2, 3, 4, start=7)
    wanted = angles_of(rotary, positions)[torch.arange(16) % 4, :, torch.arange(16)].mT
    encoding = MultimodalRotary(rotary, (4, 4, 4, 4), "interleaved")
    table = encoding.table(positions, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], wanted.cos(), atol=1e-11, rtol=0)


def test_named_arrangements_are_orders_too():
    rotary, positions = Rotary(16), scattered(9, 3)
    for name, axes in (("contiguous", (0, 0, 0, 0, 1, 1, 2, 2)),
                       ("interleaved", (0, 1, 2, 0, 1, 2, 0, 0))):  # fmt: skip
        named = MultimodalRotary(rotary, (4, 2, 2), name).table(positions)
        assert torch.equal(MultimodalRotary(rotary, (4, 2, 2), axes).table(positions), named)


def test_diagonal_video_puts_the_middle_of_each_frame_on_the_diagonal():
    frames, height, width = 3, 5, 7
    points = diagonal_video(frames, height, width, start=11).view(frames, height, width, 3)
    middle = points[:, 2, 3]
    assert torch.equal(middle, (11 + 2 * torch.arange(frames))[:, None].expand(-1, 3))
    offsets = points - points[..., :1]
    assert offsets[..., 1].unique().tolist() == [-2, -1, 0, 1, 2]
    assert offsets[..., 2].unique().tolist() == [-3, -2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("scale", [0.5, 0.75, 1.25, 2.0])
def test_hope_turns_rows_and_columns_alone_at_scaled_frames(scale):
    """The authors' two functions: frames times a scale, then 48 pairs that turn and 16 that do not.
    Time still moves rows and columns, which stand about the diagonal."""
    frames, height, width, start = 3, 4, 5, 11
    t = torch.arange(frames).view(-1, 1).expand(-1, height * width).flatten() * scale + start
    row = torch.arange(height).view(1, -1, 1).expand(frames, -1, width).flatten()
    column = torch.arange(width).view(1, 1, -1).expand(frames, height, -1).flatten()
    points = torch.stack((t, row - (height - 1) // 2 + t, column - (width - 1) // 2 + t), dim=-1)
    angles = angles_of(Rotary(128, base=1e6), points)
    parts = [angles[1 if pair % 2 == 0 else 2][:, pair] for pair in range(48)]
    wanted = torch.stack(parts + [torch.zeros_like(parts[0])] * 16, dim=-1)

    hope = Rotary(Proportional(128, 0.75, 1e6))
    encoding = MultimodalRotary(hope, (16, 24, 24), (1, 2) * 24 + (0,) * 16)
    places = diagonal_video(frames, height, width, start=start, stride=Fraction(scale))
    table = encoding.table(places, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], wanted.cos(), atol=1e-12, rtol=0)
    torch.testing.assert_close(table[:, 1], wanted.sin(), atol=1e-12, rtol=0)


def test_whole_strides_give_integers():
    whole = diagonal_video(2, 3, 4, start=Fraction(5), stride=Fraction(2))
    assert whole.dtype == torch.int64
    assert torch.equal(whole, diagonal_video(2, 3, 4, start=5))


def test_symmetric_video_is_alike_from_all_corners():
    height, width = 3, 4
    points = symmetric_video(2, height, width, start=5)
    frame = torch.arange(2).repeat_interleave(height * width)
    wanted = 4 * 5 + 2 * (height + width - 2) + 4 * (height + width - 1) * frame
    assert torch.equal(points.sum(-1), wanted)
    first = points[:12].view(height, width, 4)
    assert torch.equal(first.flip(1)[..., [1, 0, 3, 2]], first)
    assert torch.equal(first.flip(0)[..., [2, 3, 0, 1]], first)


def theirs_by_head(rotary: Rotary, positions: Tensor, sections: tuple, heads: int) -> Tensor:
    """The authors' freqs: each axis repeated over its heads, zeros for the heads that are left."""
    angles = angles_of(rotary, positions)
    parts = [angles[axis][None].repeat(count, 1, 1) for axis, count in enumerate(sections)]
    rest = heads - sum(sections)
    return torch.cat([*parts, torch.zeros(rest, *angles.shape[1:], dtype=angles.dtype)])


@pytest.mark.parametrize("sections", [(2, 3, 3), (1, 2, 2)])
def test_mhrope_is_the_authors_share_of_heads(sections):
    rotary, positions = Rotary(16), scattered(9, 3)
    angles = theirs_by_head(rotary, positions, sections, 8).repeat(1, 1, 2)  # two halves
    k, q = random(1, 8, 9, 16).double(), random(2, 16, 9, 16).double()

    def turned(x: Tensor, by: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * by.cos() + torch.cat((-second, first), dim=-1) * by.sin()

    encoding = MHRoPE(rotary, 8, sections)
    table = encoding.table(positions, dtype=torch.float64)
    torch.testing.assert_close(encoding.encode_keys(k, table), turned(k, angles))
    wanted = turned(q, angles.repeat_interleave(2, dim=0))  # two query heads a key head
    torch.testing.assert_close(encoding.encode_queries(q, table), wanted)


def test_mhrope_of_text_is_rotary():
    rotary, positions = Rotary(16), consecutive(6, start=10**9)
    alike, x = positions[:, None].expand(-1, 3), random(1, 8, 6, 16)
    encoding = MHRoPE(rotary)
    got = encoding.encode_keys(x, encoding.table(alike))
    assert torch.equal(got, rotary.encode_keys(x, rotary.table(positions)))
