"""Rotations of points and of videos against numbers that came out of their authors' code."""

from fractions import Fraction

import pytest
import torch
from tests.encodings.authors.values import CLOSE, SINGLE, eighths, fill, numbers

from posenc import (
    GRAPE,
    AxialRotary,
    ComRoPE,
    CyclicOffset,
    DirectedRotary,
    LieRE,
    MHRoPE,
    MultimodalRotary,
    RoPEMixed,
    Rotary,
)
from posenc.encodings.queries_keys.directed import golden_gate_vectors, spiral_vectors
from posenc.frequencies import Proportional
from posenc.positions import Coordinates, diagonal_video, grid, symmetric_video

POINTS = Coordinates(torch.tensor([[2, 1], [3, -2]]), scale=Fraction(1, 4))


def turned(encoding, q: torch.Tensor, positions) -> torch.Tensor:
    table = encoding.table(positions, dtype=torch.float64)
    return encoding.encode_queries(q, table).detach().ravel()


def test_liere():
    """StanfordMIMI/LieRE@b27b41b, models/rope_vit.py.

    LierePositionEncoder of 2 heads of width 6 with generators of 3, at two points, and
    apply_transforms of FlexibleAttention. Its exponential is float32.
    """
    liere = LieRE(6, block=3, heads=2).double()
    fill(liere.generators, start=1)
    made = turned(liere, eighths(1, 2, 2, 6, start=2), POINTS)
    torch.testing.assert_close(made, numbers("liere"), **SINGLE)


@pytest.mark.parametrize("variant", ["LD", "AP"])
def test_comrope(variant):
    """Longin-Yu/ComRoPE@7aeef08, model.py: ComRoPELDAttention and ComRoPEAPAttention.

    What their get_rotation_matrix makes of 2 heads of width 6 in blocks of 3, at two points.
    """
    comrope = ComRoPE(6, axes=2, block=3, heads=2, variant=variant).double()
    fill(comrope.freqs, start=1)
    if variant == "LD":
        fill(comrope.multiplier, start=2)
    made = turned(comrope, eighths(1, 2, 2, 6, start=2), POINTS)
    torch.testing.assert_close(made, numbers(f"comrope {variant}"), **CLOSE)


def test_grape_in_a_plane_of_its_own():
    """JJJYmmm/Multimodal-RoPEs@cd413b9, multimodal_ropes/freq_allocation/grape.py.

    MultiPlaneGrapeRotation with one plane and a frequency of 3/4, at 0, 1 and 6. It makes its a and
    b orthonormal, and turns from a to b where the generator a bᵀ − b aᵀ turns from b to a.
    """
    a, b = eighths(4, start=1), eighths(4, start=3)
    a = a / a.norm()
    b = b - (a @ b) * a
    grape = GRAPE(4, heads=1, speed=0.75).double()
    with torch.no_grad():
        grape.generators.copy_(torch.stack((b / b.norm(), a))[:, None])
    made = turned(grape, eighths(1, 1, 3, 4, start=2), [0, 1, 6])
    torch.testing.assert_close(made, numbers("grape_in_a_plane_of_its_own"), **CLOSE)


# The text "1 2 <start>", a video of 2 frames of 2 × 3 patches, and two more tokens.


def around(video: torch.Tensor, *text: int) -> torch.Tensor:
    """Its points with those of the text around them, which have all coordinates alike."""
    before, after = torch.arange(3), torch.tensor(text)
    alike = (each[:, None].expand(-1, video.shape[-1]) for each in (before, after))
    first, last = alike
    return torch.cat((first, video, last))


VIDEOROPE = [
    [0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 2], [3, 3, 3], [3, 3, 4], [3, 4, 2], [3, 4, 3],
    [3, 4, 4], [5, 5, 4], [5, 5, 5], [5, 5, 6], [5, 6, 4], [5, 6, 5], [5, 6, 6], [6, 6, 6],
    [7, 7, 7],
]  # fmt: skip


def test_videorope():
    """Wiselnn570/VideoRoPE@7712ca3, videorope-transformer/modeling_videorope.py.

    get_t_scale_rope_index with scale_factor=2.0, and of tokens 3, 5, 9 and 14 what its
    apply_m_modify_multimodal_rotary_pos_emb makes with sections of 2, 1 and 1 and base 100.
    """
    points = around(diagonal_video(2, 2, 3, start=3), 6, 7)
    assert points.tolist() == VIDEOROPE
    encoding = MultimodalRotary(Rotary(8, base=100.0), (2, 1, 1), (1, 2, 0, 0))
    q, some = eighths(1, 1, 17, 8, start=2), [3, 5, 9, 14]
    made = turned(encoding, q[:, :, some], points[some])
    torch.testing.assert_close(made, numbers("videorope"), **CLOSE)


def test_hope():
    """hrlics/HoPE@85b76c0, modeling_hope.py.

    get_dynamic_rope_index with scale_factors=[0.75], whose second frame stands at 3.75, and
    apply_hybrid_multimodal_rotary_pos_emb of the same tokens.
    """
    video = diagonal_video(2, 2, 3, start=3, stride=Fraction(3, 4))
    theirs = [[3.75, 3.75, 2.75], [3.75, 3.75, 3.75], [3.75, 3.75, 4.75],
              [3.75, 4.75, 2.75], [3.75, 4.75, 3.75], [3.75, 4.75, 4.75]]  # fmt: skip
    assert video.floats().tolist() == [*map(list, VIDEOROPE[3:9]), *theirs]
    encoding = MultimodalRotary(Rotary(Proportional(8, 0.5, 100.0)), (2, 1, 1), (1, 2, 0, 0))
    q = eighths(1, 1, 17, 8, start=2)[:, :, 3:15]
    some = [0, 2, 6, 11]
    made = turned(encoding, q[:, :, some], video[some])
    torch.testing.assert_close(made, numbers("hope"), **CLOSE)


def test_vrope():
    """johncaged/VRoPE@6a7adbc, vrope.py: VRoPE of the same; its pairs repeat these four."""
    theirs = [[3, 5, 4, 6], [4, 4, 5, 5], [5, 3, 6, 4], [4, 6, 3, 5], [5, 5, 4, 4], [6, 4, 5, 3],
              [7, 9, 8, 10], [8, 8, 9, 9], [9, 7, 10, 8], [8, 10, 7, 9], [9, 9, 8, 8],
              [10, 8, 9, 7], [11] * 4, [12] * 4]  # fmt: skip
    points = around(symmetric_video(2, 2, 3, start=3), 11, 12)
    assert points[3:].tolist() == theirs


def test_mhrope():
    """JJJYmmm/Multimodal-RoPEs@cd413b9, multimodal_ropes/freq_allocation/mhrope.py.

    apply_transformation of MHRopeEmbedding for 4 heads, of which one keeps its keys as they are,
    base 100; turned by halves.
    """
    encoding = MHRoPE(Rotary(4, base=100.0), 4, (1, 1, 1))
    points = torch.tensor([[5, 2, 9], [3, 11, 4]])
    made = turned(encoding, eighths(1, 4, 2, 4, start=1), points)
    torch.testing.assert_close(made, numbers("mhrope"), **CLOSE)


@pytest.mark.parametrize("form", ["croco", "rope_vit"])
def test_axial_forms(form):
    """naver/croco@d7de070, models/pos_embed.py: RoPE2D, as it is without CUDA. And
    naver-ai/rope-vit@ce85c2e, deit/models_v2_rope.py: compute_axial_cis(8, 3, 2), apply_rotary_emb.

    Tokens 1 and 5 of 2 rows of 3.
    """
    q = eighths(1, 1, 6, 8, start=1)[:, :, [1, 5]]
    made = turned(AxialRotary(8, form=form), q, grid(2, 3)[[1, 5]])
    torch.testing.assert_close(made, numbers(form), **SINGLE)


def test_rope_mixed():
    """The same file's compute_mixed_cis of one layer and 2 heads, of the same tokens."""
    mixed = RoPEMixed(8, heads=2)
    mixed.load(eighths(2, 8, start=4).float())
    q = eighths(1, 2, 6, 8, start=1)[:, :, [1, 5]]
    made = turned(mixed, q, grid(2, 3)[[1, 5]])
    torch.testing.assert_close(made, numbers("rope_mixed"), **SINGLE)


def test_golden_gate():
    """GoldenGateRoPENd(3, 2, 8, 0.5, 8.0, 0.25) of jerryxio.ng/posts/nd-rope, as copies of it stand
    in public repositories: two tokens of 2 heads at points of three coordinates."""
    encoding = DirectedRotary(
        golden_gate_vectors(8, axes=3, heads=2, slowest=0.5, fastest=8.0, still=0.25)
    )
    points = Coordinates([[0.25, -0.5, 0.75], [1.0, 0.125, -0.5]])
    q = eighths(1, 2, 2, 8, start=1).transpose(1, 2)
    made = encoding.encode_queries(q, encoding.table(points, dtype=torch.float64))
    torch.testing.assert_close(
        made.transpose(1, 2).ravel(), numbers("golden_gate"), rtol=0, atol=2e-6
    )


def test_spiral():
    """huajianduzhuo-code/Spiral_RoPE@bde84ff, RoPE_DeiT/rope.py: VisionRotaryEmbedding(8, 9,
    rotate=2, max_freq_lang=1.5, same_theta=False) of 9 × 9 patches.

    By how much the angles of the patch one row and two columns from the middle differ from those of
    the middle, pair by pair.
    """
    made = spiral_vectors(16, 4) @ torch.tensor([1.0, 2.0]).double()
    torch.testing.assert_close(made, numbers("spiral"), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "theirs",
    [
        [[0, -1, -2, 2, 1], [1, 0, -1, -2, 2], [2, 1, 0, -1, -2], [-2, 2, 1, 0, -1],
         [-1, -2, 2, 1, 0]],
        [[0, -1, -2, -3, 2, 1], [1, 0, -1, -2, -3, 2], [2, 1, 0, -1, -2, -3],
         [3, 2, 1, 0, -1, -2], [-2, 3, 2, 1, 0, -1], [-1, -2, 3, 2, 1, 0]],
    ],
)  # fmt: skip
def test_cyclic_offset(theirs):
    """sokrypton/ColabDesign@e31a56f, af/examples/af_cyc_design.ipynb: add_cyclic_offset."""
    row = range(len(theirs))
    assert CyclicOffset(len(theirs)).distance(row, row).tolist() == theirs
