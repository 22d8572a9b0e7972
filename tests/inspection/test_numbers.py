"""Scaling bands, resolution, binary digits, norms, and what attention gains from positions."""

import pytest
import torch

from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.inspection.attention import attention_effect, rotary_scores
from posenc.inspection.binary import binary_digits, period_ratio, sines
from posenc.inspection.norms import columns_that_move, norm_shares
from posenc.inspection.resolution import resolution
from posenc.inspection.scaling import scaling_of

PLAIN = Geometric(128, 500_000.0)


def test_linear_stretches_all_and_ntk_none_but_the_ends():
    lengths = {"trained_length": 8192, "target_length": 65536}
    linear = scaling_of(PLAIN, Linear(PLAIN, 8.0), **lengths)
    assert linear.count("stretched") == 64
    ntk = scaling_of(PLAIN, NTK(PLAIN, 8.0), **lengths)
    assert (ntk.count("kept"), ntk.count("stretched")) == (1, 1)
    plain = scaling_of(PLAIN, PLAIN, **lengths)
    assert plain.count("kept") == 64
    assert plain.unseen == sum(w > 8192 for w in PLAIN.wavelengths())


@pytest.mark.parametrize("scaled", [YaRN(PLAIN, 8.0, 8192), Llama3(PLAIN, 8.0)], ids=str)
def test_yarn_and_llama3_keep_the_fast_and_stretch_the_slow(scaled):
    found = scaling_of(PLAIN, scaled, trained_length=8192, target_length=65536)
    order = {"kept": 0, "mixed": 1, "stretched": 2}
    ranks = [order[band] for band in found.bands]
    assert ranks == sorted(ranks)
    assert {0, 1, 2} == set(ranks)
    for turns, band in zip(found.turns, found.bands, strict=True):
        if turns < 1:
            assert band == "stretched"
    assert found.unseen_after <= found.unseen


def test_schedules_of_one_width_alone_are_compared():
    with pytest.raises(ValueError, match="64 pairs and the scaled one 4"):
        scaling_of(PLAIN, Geometric(8), trained_length=1, target_length=1)


@pytest.mark.parametrize(("dtype", "kept"), [(torch.bfloat16, 769), (torch.float16, 3073)])
def test_positions_in_narrow_numbers(dtype, kept):
    """8 bits keep 256 numbers apart, then every second, fourth, …: 256 + 4 · 128 + 1 to 4,096."""
    found = resolution(Sinusoidal(128), 4096, dtype=dtype)
    assert found.positions == found.rows_from_positions == kept
    assert found.rows > 4000


def test_binary_digits_count():
    digits = binary_digits(100)
    assert torch.equal(digits @ (1 << torch.arange(7)), torch.arange(100))
    for bit in range(7):
        changes = digits[:, bit].diff().abs().sum().item()
        assert changes == 99 // 2**bit


def test_sines_have_the_periods_that_they_say():
    schedule = Geometric(8, 100.0)
    columns = sines(schedule, 50)
    for pair, wavelength in enumerate(schedule.wavelengths()):
        meant = torch.sin(2 * torch.pi * torch.arange(50).double() / wavelength)
        torch.testing.assert_close(columns[:, pair], meant, rtol=0, atol=1e-12)
    assert period_ratio(schedule) == pytest.approx([100 ** (2 / 8)] * 3)


def test_norms_of_a_sentence():
    torch.manual_seed(0)
    embedding, encoding = torch.randn(9, 64), Sinusoidal(64).table(torch.arange(9))
    plain, scaled = norm_shares(embedding, encoding), norm_shares(embedding, encoding, scale=8.0)
    torch.testing.assert_close(plain.encoding, torch.full((9,), 32**0.5))
    torch.testing.assert_close(scaled.embedding, 8 * plain.embedding)
    assert (scaled.share < plain.share).all()
    torch.testing.assert_close(plain.total, (embedding + encoding).norm(dim=1))
    with pytest.raises(ValueError, match="one row a token of each"):
        norm_shares(embedding, encoding[1:])
    still = columns_that_move(Sinusoidal(512).table(torch.arange(50)))
    assert (still < 0.1).sum() > 512 * 0.4  # two columns of five hardly move in a short sentence


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_range_may_be_twice_the_largest_number(dtype):
    """In float16 it was infinite."""
    moved = columns_that_move(torch.tensor([[61440.0], [-61440.0], [0.0]], dtype=dtype))
    assert moved.tolist() == [122880.0]


def test_attention_gains_an_order():
    torch.manual_seed(0)
    q = torch.randn(2, 1, 8).expand(2, 6, 8)  # six equal tokens
    for positional in (Positional(scores=ALiBi(2)), Positional(queries_keys=Rotary(8))):
        effect = attention_effect(q, q, positional)
        torch.testing.assert_close(effect.without, torch.full((2, 6, 6), 1 / 6))
        assert effect.difference.abs().max() > 0.01
        torch.testing.assert_close(effect.with_encoding - effect.without, effect.difference)
        assert torch.allclose(effect.with_encoding.sum(-1), torch.ones(2, 6))
    learned = attention_effect(q, q, Positional(scores=T5Bias(2, std=1.0)))
    assert not learned.difference.requires_grad


def test_rotary_scores_are_sums_of_cosines_for_equal_vectors():
    scores = rotary_scores(Rotary(16), torch.ones(16).double(), torch.ones(16).double(), 30)
    offsets = torch.arange(30).double()
    frequencies = 10_000.0 ** (-torch.arange(8).double() / 8)
    meant = 2 * torch.cos(offsets[:, None] * frequencies).sum(1)
    torch.testing.assert_close(scores, meant, rtol=0, atol=1e-12)


@pytest.mark.parametrize("arguments", [{}, {"pairing": "interleaved"}, {"head_dim": 24}])
@pytest.mark.parametrize("length", [1, 30])
def test_rotary_scores_of_two_vectors_know_no_layout(arguments, length):
    first = Rotary(16, **arguments)
    q, k = torch.randn(2, first.head_dim, generator=torch.Generator().manual_seed(0)).double()
    last = Rotary(16, heads_first=False, **arguments)
    expected = rotary_scores(first, q, k, length)
    assert torch.equal(rotary_scores(last, q, k, length), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_narrow_vectors_are_turned_and_summed_in_float32(dtype):
    q, k = (300 * torch.ones(16, dtype=dtype) for _ in range(2))
    scores = rotary_scores(Rotary(16), q, k, 30)
    assert torch.equal(scores, rotary_scores(Rotary(16), q.float(), k.float(), 30))
    assert scores[0] == 16 * 300.0**2  # beyond float16
