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
from posenc.encodings.queries_keys.directions import golden_gate_vectors, spiral_vectors
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
    theirs = """-0.0812215507 0.4020710588 1.017284036 -0.7213327289 -0.009085580707 0.5547264814
        -0.2768852115 0.4676961303 0.7298767567 -0.2939214706 -1.056209683 -0.03400297463
        0.5995901227 -0.6467647552 0.6151726246 0.8135179281 -0.637834847 -0.387434423 1.139532447
        0.1910902262 -0.2357445061 -0.1775506735 0.2919412553 -1.011865139"""
    made = turned(liere, eighths(1, 2, 2, 6, start=2), POINTS)
    torch.testing.assert_close(made, numbers(theirs), **SINGLE)


@pytest.mark.parametrize(
    ("variant", "theirs"),
    [
        (
            "LD",
            """-0.2471400795 0.5085663744 0.9398973476 -0.523452145 0.02656047306 0.7439202869
            -0.3458156663 -0.7575678496 0.3669161732 -0.5335960627 -0.8843550647 -0.3692104567
            0.7991575803 -0.710588285 0.1125231132 0.5810137518 -0.9199438414 -0.1867521055
            -0.3502521107 1.111993315 0.1772549757 0.5249163045 0.1908959536 -0.9103002846""",
        ),
        (
            "AP",
            """-0.1372227027 0.8449603852 0.685811109 -0.5453280801 -0.268073145 0.6774061366
            -0.6738905413 0.6010755332 0.1127153127 -0.8981002886 0.4820245188 0.4052076442
            0.4997458064 -0.8315213183 0.46376333 0.4275707836 -1.017771571 0.008617032715
            0.9501834104 0.1030316235 -0.6907683919 -0.365052398 0.9433190594 -0.3427986274""",
        ),
    ],
)
def test_comrope(variant, theirs):
    """Longin-Yu/ComRoPE@7aeef08, model.py: ComRoPELDAttention and ComRoPEAPAttention.

    What their get_rotation_matrix makes of 2 heads of width 6 in blocks of 3, at two points.
    """
    comrope = ComRoPE(6, axes=2, block=3, heads=2, variant=variant).double()
    fill(comrope.freqs, start=1)
    if variant == "LD":
        fill(comrope.multiplier, start=2)
    made = turned(comrope, eighths(1, 2, 2, 6, start=2), POINTS)
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


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
    theirs = """-0.25 0.375 1 -0.5 0.4517369382 0.3717890511 -0.7615611475 0.4837160931 0.3712705345
        0.01938241085 -1.095755877 -0.3379742161"""
    made = turned(grape, eighths(1, 1, 3, 4, start=2), [0, 1, 6])
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


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
    theirs = """0.08846906006 -0.1139470226 -0.77063636 -0.3733137652 -0.2651381252 1.001319667
        -0.8926055124 -0.03552228425 0.7954143755 -0.2760373679 0.2190880637 -0.9362995669
        0.2654071802 -0.04391322691 0.9836795313 -0.7169157001 0.5149199105 1.179433837
        -0.4784023444 -0.162804727 0.0219655584 0.4140480928 -0.6886626147 0.2271995177
        -0.3600638575 -0.672166713 1.187382088 -0.5778397879 0.1047808118 0.03628925286
        -0.3483873954 -0.3452914414"""
    made = turned(encoding, q[:, :, some], points[some])
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


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
    theirs = """0.08846906006 -0.1139470226 -1 -0.375 -0.2651381252 1.001319667 -0.625 0
        0.7954143755 -0.2760373679 0.5 -1 0.2654071802 -0.04391322691 0.875 -0.625 0.1832107397
        1.247922015 -0.75 -0.125 -0.4817248435 -0.07204612738 -0.375 0.25 -0.01410080733
        -0.6063599632 0.875 -0.625 0.3747347959 0.2923227582 -0.875 -0.25"""
    made = turned(encoding, q[:, :, some], video[some])
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


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
    theirs = """0.4220388057 0.4194973463 0.7766165376 -0.7678847417 0.1063781161 0.5060112868
        -1.025272499 -0.3668481671 0.6299547156 0.7598835997 0.4257723058 0.02649367587
        -0.3727834785 -0.6763979614 -0.50165474 -0.7778083297 -0.7972389791 -0.8780855487
        0.3606036746 -0.1010730883 0.855739104 -0.6196835908 0.4170858256 0.8237064084 -0.5 0.125
        0.75 -0.75 -0.125 0.5 -1 -0.375"""
    points = torch.tensor([[5, 2, 9], [3, 11, 4]])
    made = turned(encoding, eighths(1, 4, 2, 4, start=1), points)
    torch.testing.assert_close(made, numbers(theirs), **CLOSE)


@pytest.mark.parametrize(
    ("form", "theirs"),
    [
        (
            "croco",
            """0.125 0.75 -0.75 -0.125 0.5857027769 -1.019962549 0.2181220949 0.1489176154
            0.4351184666 -0.5723771453 0.9090087414 0.6963364482 -0.1425385773 0.0761610046
            -0.8900464773 -1.004900217""",
        ),
        (
            "rope_vit",
            """-0.563565433 0.5104105473 -0.7337739468 -0.1992505789 0.5 -1 -0.375 0.25
            0.03850185871 1.117370844 -0.02649367601 0.7598836422 -0.3000428379 -0.6986410022
            0.5973355174 -0.9450874925""",
        ),
    ],
)
def test_axial_forms(form, theirs):
    """naver/croco@d7de070, models/pos_embed.py: RoPE2D, as it is without CUDA. And
    naver-ai/rope-vit@ce85c2e, deit/models_v2_rope.py: compute_axial_cis(8, 3, 2), apply_rotary_emb.

    Tokens 1 and 5 of 2 rows of 3.
    """
    q = eighths(1, 1, 6, 8, start=1)[:, :, [1, 5]]
    made = turned(AxialRotary(8, form=form), q, grid(2, 3)[[1, 5]])
    torch.testing.assert_close(made, numbers(theirs), **SINGLE)


def test_rope_mixed():
    """The same file's compute_mixed_cis of one layer and 2 heads, of the same tokens."""
    mixed = RoPEMixed(8, heads=2)
    mixed.load(eighths(2, 8, start=4).float())
    q = eighths(1, 2, 6, 8, start=1)[:, :, [1, 5]]
    theirs = """-0.2498713434 0.7181150913 -0.5104105473 0.563565433 0.09898126125 -1.113643885
        -0.4251931608 0.1494516134 1.054535031 -0.3714241087 0.5050331354 -0.5683894157
        -0.7436647415 0.1583909541 1.032863617 0.4280102849 -0.5271696448 0.9288256764
        -0.332344383 0.3939190209 0.75 -0.75 -0.3939190209 0.332344383 -0.03866091743 -0.9091921449
        1.063958764 0.09282617271 -0.4510492682 -0.2493582815 1.017756104 -0.2986177504"""
    made = turned(mixed, q, grid(2, 3)[[1, 5]])
    torch.testing.assert_close(made, numbers(theirs), **SINGLE)


def test_golden_gate():
    """GoldenGateRoPENd(3, 2, 8, 0.5, 8.0, 0.25) of jerryxio.ng/posts/nd-rope, as copies of it stand
    in public repositories: two tokens of 2 heads at points of three coordinates."""
    encoding = DirectedRotary(
        golden_gate_vectors(8, axes=3, heads=2, slowest=0.5, fastest=8.0, still=0.25)
    )
    points = Coordinates([[0.25, -0.5, 0.75], [1.0, 0.125, -0.5]])
    q = eighths(1, 2, 2, 8, start=1).transpose(1, 2)
    made = encoding.encode_queries(q, encoding.table(points, dtype=torch.float64))
    theirs = """-0.625 0.089521669 -0.71980381 -0.93595743 -0.25 0.36415774 0.93408108 0.3736425
        0.125 0.92372322 -0.071732968 -0.15536183 0.5 -0.84216106 -0.8354516 0.23235252
        0.875 -0.50615752 0.18313688 1.1452674 -0.875 -0.44376749 0.32723978 0.28104758
        -0.5 -0.021429241 0.98919493 0.21769613 -0.125 0.51494253 -0.76419461 0.80977368"""
    torch.testing.assert_close(made.transpose(1, 2).ravel(), numbers(theirs), rtol=0, atol=2e-6)


def test_spiral():
    """huajianduzhuo-code/Spiral_RoPE@bde84ff, RoPE_DeiT/rope.py: VisionRotaryEmbedding(8, 9,
    rotate=2, max_freq_lang=1.5, same_theta=False) of 9 × 9 patches.

    By how much the angles of the patch one row and two columns from the middle differ from those of
    the middle, pair by pair.
    """
    theirs = "1.5 0.15 0.0318198 0.003181979 3 0.3 0.01060661 0.00106066"
    made = spiral_vectors(16, 4) @ torch.tensor([1.0, 2.0]).double()
    torch.testing.assert_close(made, numbers(theirs), rtol=0, atol=1e-6)


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
