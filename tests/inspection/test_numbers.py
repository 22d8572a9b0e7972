"""Scaling bands, resolution, digits, norms, lengths, patches, directions, attention."""

import math

import pytest
import torch

from posenc import (
    ALiBi,
    AxialRotary,
    AxialSinusoidal,
    DINOv3Rotary,
    DirectedRotary,
    LTXRotary,
    MultimodalRotary,
    Positional,
    Randomized,
    RoPEMixed,
    Rotary,
    Sinusoidal,
    T5Bias,
    VJEPA2Rotary,
    attention,
)
from posenc.frequencies import NTK, Clipped, FromCheckpoint, Geometric, Linear, Llama3, YaRN
from posenc.inspection.attention import attention_effect, rotary_scores
from posenc.inspection.binary import binary_digits, period_ratio, sines
from posenc.inspection.directions import frequency_vectors
from posenc.inspection.lengths import length_statistics
from posenc.inspection.norms import columns_that_move, norm_shares
from posenc.inspection.patches import patch_similarity
from posenc.inspection.resolution import resolution
from posenc.inspection.scaling import scaling_of
from posenc.positions import grid

PLAIN = Geometric(128, 500_000.0)
LENGTHS = {"trained_length": 8192, "target_length": 65536}


def test_linear_stretches_all_and_ntk_none_but_the_ends():
    linear, ntk, plain = (
        scaling_of(PLAIN, each, **LENGTHS) for each in (Linear(PLAIN, 8.0), NTK(PLAIN, 8.0), PLAIN)
    )
    assert linear.count("stretched") == plain.count("kept") == 64
    assert (ntk.count("kept"), ntk.count("stretched")) == (1, 1)
    assert plain.unseen == sum(w > 8192 for w in PLAIN.wavelengths())


@pytest.mark.parametrize("scaled", [YaRN(PLAIN, 8.0, 8192), Llama3(PLAIN, 8.0)], ids=str)
def test_yarn_and_llama3_keep_the_fast_and_stretch_the_slow(scaled):
    found = scaling_of(PLAIN, scaled, **LENGTHS)
    ranks = [("kept", "mixed", "stretched").index(band) for band in found.bands]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    slow = {band for turns, band in zip(found.turns, found.bands, strict=True) if turns < 1}
    assert slow == {"stretched"}


def test_pairs_that_no_longer_turn_are_stretched_the_most_and_backward_ones_count_as_others():
    plain = Geometric(8)
    bands = scaling_of(plain, Clipped(plain, 100), trained_length=100, target_length=400).bands
    assert bands == ("kept", "mixed", "mixed", "stretched")
    schedules = [FromCheckpoint(torch.tensor([1.0, sign * 1e-6])) for sign in (1, -1)]
    forth, back = (scaling_of(s, s, trained_length=100, target_length=200) for s in schedules)
    assert (back.unseen, back.unseen_after, back.turns) == (1, 1, forth.turns)


@pytest.mark.parametrize(("dtype", "kept"), [(torch.bfloat16, 769), (torch.float16, 3073)])
def test_positions_in_narrow_numbers(dtype, kept):
    """8 bits keep 256 numbers apart, then every second, fourth, …: 256 + 4 · 128 + 1 to 4,096."""
    found = resolution(Sinusoidal(128), 4096, dtype=dtype)
    assert found.positions == found.rows_from_positions == kept
    assert found.rows > 4000
    with pytest.raises(ValueError, match="infinite"):
        resolution(Sinusoidal(8), 70_000, dtype=torch.float16)


def test_binary_digits_count_and_sines_have_their_periods():
    digits = binary_digits(100)
    assert torch.equal(digits @ (1 << torch.arange(7)), torch.arange(100))
    schedule = Geometric(8, 100.0)
    lengths = torch.tensor(schedule.wavelengths(), dtype=torch.float64)
    turns = torch.arange(50).double()[:, None] / lengths
    torch.testing.assert_close(sines(schedule, 50), torch.sin(2 * torch.pi * turns))
    assert period_ratio(schedule) == pytest.approx([100 ** (2 / 8)] * 3)
    ratios = period_ratio(FromCheckpoint(torch.tensor([1.0, 0.0, 0.0])))
    assert ratios[0] == math.inf
    assert math.isnan(ratios[1])


def test_norms_of_a_sentence():
    torch.manual_seed(0)
    embedding, encoding = torch.randn(9, 64), Sinusoidal(64).table(torch.arange(9))
    plain, scaled = norm_shares(embedding, encoding), norm_shares(embedding, encoding, scale=8.0)
    torch.testing.assert_close(plain.encoding, torch.full((9,), 32**0.5))
    torch.testing.assert_close(scaled.embedding, 8 * plain.embedding)
    assert (scaled.share < plain.share).all()
    torch.testing.assert_close(plain.total, (embedding + encoding).norm(dim=1))
    still = columns_that_move(Sinusoidal(512).table(torch.arange(50)))
    assert (still < 0.1).sum() > 512 * 0.4  # two columns of five hardly move in a short sentence


@pytest.mark.parametrize(
    ("size", "dtype"), [(1e-30, torch.float32), (1e30, torch.float32), (200.0, torch.float16)]
)
def test_shares_hold_where_squares_leave_the_dtype(size, dtype):
    x = torch.full((1, 4), size, dtype=dtype)
    found = norm_shares(x, x)
    assert found.share.tolist() == [0.5]
    assert found.total.item() == pytest.approx(4 * size, rel=1e-3)
    zeros = norm_shares(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.zeros(2, 2)).share
    assert zeros[0].isnan()
    assert zeros[1] == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_range_may_be_twice_the_largest_number(dtype):
    moved = columns_that_move(torch.tensor([[61440.0], [-61440.0], [0.0]], dtype=dtype))
    assert moved.tolist() == [122880.0]


def test_lengths_by_hand():
    found = length_statistics(iter([5, 10, 7]), trained_length=6)
    assert (found.documents, found.tokens, found.longest, found.beyond) == (3, 22, 10, 5)
    assert (found.documents_beyond, found.buckets_never_met) == (2, ())
    assert found.mean == 22 / 3
    assert length_statistics([]).mean == 0
    assert length_statistics(torch.tensor([100, 100], dtype=torch.int8)).tokens == 200
    with pytest.raises(TypeError):
        length_statistics([2.5])  # type: ignore[list-item]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("longest", [1, 9, 64, 5000])
def test_a_bucket_is_never_met_if_its_number_gets_no_gradient(bidirectional, longest):
    bias = T5Bias(1, bidirectional=bidirectional)
    few = range(1 - min(longest, 300), min(longest, 300))
    bias.profile(torch.tensor(few)).sum().backward()
    untouched = (bias.weight.grad == 0).flatten().nonzero().flatten().tolist()
    assert list(length_statistics([longest], bias=bias).buckets_never_met) == untouched
    assert length_statistics([0], bias=bias).buckets_never_met == tuple(range(bias.buckets))


def test_the_similarity_of_patches_is_a_mean_of_cosines():
    """MAE: the mean of cos(Δy ω) and cos(Δx ω) over all ω."""
    size, patch, base = (4, 6), (1, 2), 100.0
    table = AxialSinusoidal(16, base=base).table(grid(*size), dtype=torch.float64)
    frequencies = base ** (-torch.arange(4).double() / 4)
    apart = (grid(*size) - torch.tensor(patch)).double()
    expected = (apart.unsqueeze(-1) * frequencies).cos().mean((-1, -2)).view(size)
    torch.testing.assert_close(patch_similarity(table, size, patch), expected)
    rotary = AxialRotary(16)
    table = rotary.table(grid(*size), dtype=torch.float64)
    ones = torch.ones(1, 24, 16, dtype=torch.float64)
    q, k = rotary(ones, ones, grid(*size))
    found = patch_similarity(table, size, patch)
    torch.testing.assert_close(found.flatten(), (q @ k.mT / 16)[0, 8])
    turns = torch.complex(table[:, 0], table[:, 1])
    torch.testing.assert_close(patch_similarity(turns, size, patch), found)


ENCODINGS = {
    "axial": (AxialRotary(16), 2),
    "pixtral": (AxialRotary(16, form="pixtral"), 2),
    "wan": (AxialRotary(20, form="wan"), 3),
    "multimodal": (MultimodalRotary(Rotary(16), (4, 2, 2), "interleaved"), 3),
    "directed": (DirectedRotary.spiral(16), 2),
    "golden gate": (DirectedRotary.golden_gate(8, axes=3, heads=2), 3),
    "mixed": (RoPEMixed(8, heads=2), 2),
    "v-jepa": (VJEPA2Rotary(24), 3),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_tables_are_cos_and_sin_of_vectors_with_points(name):
    encoding, axes = ENCODINGS[name]
    points = torch.randint(0, 9, (6, axes), generator=torch.Generator().manual_seed(0))
    vectors = frequency_vectors(encoding)
    angles = torch.einsum("...pa,sa->s...p", vectors, points.double())
    got = encoding.table(points, dtype=torch.float64).detach()
    cos, sin = got.unbind(-2 if name == "v-jepa" else 1)
    torch.testing.assert_close(torch.stack((cos, sin)), torch.stack((angles.cos(), angles.sin())))


@pytest.mark.parametrize("encoding", [Rotary(8), DINOv3Rotary(8, (4, 4)), LTXRotary(8, 2, (2,))])
def test_what_turns_by_no_product_has_no_vectors(encoding):
    with pytest.raises(TypeError, match="product"):
        frequency_vectors(encoding)


def test_attention_gains_an_order():
    torch.manual_seed(0)
    q = torch.randn(2, 1, 8).expand(2, 6, 8)  # six equal tokens
    for positional in (Positional(scores=ALiBi(2)), Positional(queries_keys=Rotary(8))):
        effect = attention_effect(q, q, positional)
        torch.testing.assert_close(effect.without, torch.full((2, 6, 6), 1 / 6))
        assert effect.difference.abs().max() > 0.01
        torch.testing.assert_close(effect.with_encoding - effect.without, effect.difference)
        assert torch.allclose(effect.with_encoding.sum(-1), torch.ones(2, 6))


def test_the_effect_on_wide_queries_is_wide_and_other_layouts_are_refused():
    q, rotary = torch.randn(4, 4, 8, dtype=torch.float64), Rotary(8)
    found = attention_effect(q, q, Positional(queries_keys=rotary))
    turned = rotary.encode_queries(q, rotary.table(torch.arange(4), dtype=torch.float64))
    wanted = (turned @ turned.mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(found.with_encoding, wanted, rtol=1e-12, atol=1e-14)
    for positional in (
        Positional(queries_keys=Rotary(8, heads_first=False)),
        Positional(queries_keys=Rotary(8), positions=Randomized(64)),
    ):
        with pytest.raises(ValueError, match=r"heads_first|positions"):
            attention_effect(q, q, positional)


def test_rotary_scores_are_sums_of_cosines_for_equal_vectors():
    ones = torch.ones(16).double()
    frequencies = 10_000.0 ** (-torch.arange(8).double() / 8)
    meant = 2 * torch.cos(torch.arange(30).double()[:, None] * frequencies).sum(1)
    torch.testing.assert_close(rotary_scores(Rotary(16), ones, ones, 30), meant)


@pytest.mark.parametrize("arguments", [{}, {"pairing": "interleaved"}, {"head_dim": 24}])
def test_rotary_scores_are_those_of_attention_in_any_layout(arguments):
    """Of a schedule with an attention factor, which multiplies queries and keys."""
    schedule = YaRN(Geometric(8), 4.0, trained_length=64)
    rotary = Rotary(schedule, **arguments)
    q, k = torch.randn(2, rotary.head_dim, dtype=torch.float64)
    content = q.expand(1, 1, 5, -1), k.expand(1, 1, 5, -1)
    turned_q, turned_k = rotary(*content, torch.arange(5))
    scores = rotary_scores(rotary, q, k, 5)
    torch.testing.assert_close(scores, (turned_q @ turned_k.mT)[0, 0, :, 0])
    last = Rotary(schedule, heads_first=False, **arguments)
    assert torch.equal(rotary_scores(last, q, k, 5), scores)
    values = torch.eye(5, dtype=torch.float64).expand(1, 1, 5, 5)
    weights = attention(*content, values, positional=Positional(queries_keys=rotary))[0, 0, -1]
    torch.testing.assert_close(weights.flip(0), (scores / rotary.head_dim**0.5).softmax(0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_narrow_vectors_are_turned_and_summed_in_float32(dtype):
    q, k = (300 * torch.ones(16, dtype=dtype) for _ in range(2))
    scores = rotary_scores(Rotary(16), q, k, 30)
    assert torch.equal(scores, rotary_scores(Rotary(16), q.float(), k.float(), 30))
    assert scores[0] == 16 * 300.0**2  # beyond float16
