"""Scaling bands, resolution, digits, norms, lengths, patches, directions, attention."""

import pytest
import torch

from posenc import (
    ALiBi,
    AxialRotary,
    AxialSinusoidal,
    DirectedRotary,
    MultimodalRotary,
    Positional,
    RoPEMixed,
    Rotary,
    Sinusoidal,
    VJEPA2Rotary,
    attention,
)
from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.inspection.attention import attention_effect, order_effect, rotary_scores
from posenc.inspection.frequencies import frequency_vectors, scaling_of
from posenc.inspection.precision import resolution
from posenc.inspection.similarity import patch_similarity
from posenc.inspection.tables import columns_that_move, norm_shares
from posenc.positions import grid
from posenc.transformer import Encoder

PLAIN = Geometric(128, 500_000.0)
F64 = torch.float64


@pytest.mark.parametrize(
    ("scaled", "kept", "stretched"),
    [
        (PLAIN, 64, 0),
        (Linear(PLAIN, 8.0), 0, 64),
        (NTK(PLAIN, 8.0), 1, 1),
        (YaRN(PLAIN, 8.0, 8192), 19, 29),
        (Llama3(PLAIN, 8.0), 29, 29),
    ],
)
def test_fast_pairs_are_kept_and_slow_ones_stretched(scaled, kept, stretched):
    found = scaling_of(PLAIN, scaled, trained_length=8192, target_length=65536)
    assert (found.count("kept"), found.count("stretched")) == (kept, stretched)
    ranks = [("kept", "mixed", "stretched").index(band) for band in found.bands]
    assert ranks == sorted(ranks)
    assert found.unseen == sum(w > 8192 for w in PLAIN.wavelengths())


@pytest.mark.parametrize(("dtype", "kept"), [(torch.bfloat16, 769), (torch.float16, 3073)])
def test_positions_in_narrow_numbers(dtype, kept):
    """8 bits keep 256 numbers apart, then every second, fourth, …: 256 + 4 · 128 + 1 to 4,096."""
    found = resolution(Sinusoidal(128), 4096, dtype=dtype)
    assert found.positions == found.rows_from_positions == kept
    assert found.rows > 4000


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


@pytest.mark.parametrize(("size", "dtype"), [(1e30, torch.float32), (61440.0, torch.float16)])
def test_norms_and_ranges_hold_where_squares_leave_the_dtype(size, dtype):
    x = torch.full((1, 4), size, dtype=dtype)
    found = norm_shares(x, x)
    assert (found.share.item(), found.total.item()) == (0.5, pytest.approx(4 * size, rel=1e-3))
    assert columns_that_move(torch.cat((x, -x)))[0] == pytest.approx(2 * size)


def test_the_similarity_of_patches_is_a_mean_of_cosines():
    """MAE: the mean of cos(Δy ω) and cos(Δx ω) over all ω."""
    size, patch, base = (4, 6), (1, 2), 100.0
    table = AxialSinusoidal(16, base=base).table(grid(*size), dtype=F64)
    frequencies = base ** (-torch.arange(4).double() / 4)
    apart = (grid(*size) - torch.tensor(patch)).double()
    expected = (apart.unsqueeze(-1) * frequencies).cos().mean((-1, -2)).view(size)
    torch.testing.assert_close(patch_similarity(table, size, patch), expected)
    rotary, ones = AxialRotary(16), torch.ones(1, 24, 16, dtype=F64)
    table = rotary.table(grid(*size), dtype=F64)
    q, k = rotary(ones, ones, grid(*size))
    found = patch_similarity(table, size, patch)
    torch.testing.assert_close(found.flatten(), (q @ k.mT / 16)[0, 8])


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
    angles = torch.einsum("...pa,sa->s...p", frequency_vectors(encoding), points.double())
    cos, sin = encoding.table(points, dtype=F64).detach().unbind(-2 if name == "v-jepa" else 1)
    torch.testing.assert_close(torch.stack((cos, sin)), torch.stack((angles.cos(), angles.sin())))


@pytest.mark.parametrize(
    "positional", [Positional(scores=ALiBi(2)), Positional(queries_keys=Rotary(8))]
)
def test_attention_gains_an_order(positional):
    torch.manual_seed(0)
    q = torch.randn(2, 1, 8, dtype=F64).expand(2, 6, 8)  # six equal tokens
    effect = attention_effect(q, q, positional)
    torch.testing.assert_close(effect.without, torch.full((2, 6, 6), 1 / 6, dtype=F64))
    assert effect.difference.abs().max() > 0.01
    values = torch.eye(6, dtype=F64).expand(1, 2, 6, 6)
    wanted = attention(q[None], q[None], values, positional=positional)[0]
    torch.testing.assert_close(effect.with_encoding, wanted, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(effect.with_encoding - effect.without, effect.difference)


def test_rotary_scores_are_sums_of_cosines_for_equal_vectors():
    ones = torch.ones(16).double()
    frequencies = 10_000.0 ** (-torch.arange(8).double() / 8)
    meant = 2 * torch.cos(torch.arange(30).double()[:, None] * frequencies).sum(1)
    torch.testing.assert_close(rotary_scores(Rotary(16), ones, ones, 30), meant)
    narrow = 300 * torch.ones(16, dtype=torch.float16)
    assert rotary_scores(Rotary(16), narrow, narrow, 30)[0] == 16 * 300.0**2  # beyond float16


@pytest.mark.parametrize("arguments", [{}, {"pairing": "interleaved"}, {"head_dim": 24}])
def test_rotary_scores_are_those_of_attention_in_any_layout(arguments):
    """Of a schedule with an attention factor, which multiplies queries and keys."""
    schedule = YaRN(Geometric(8), 4.0, trained_length=64)
    rotary = Rotary(schedule, **arguments)
    q, k = torch.randn(2, rotary.head_dim, dtype=F64)
    scores = rotary_scores(rotary, q, k, 5)
    last = Rotary(schedule, heads_first=False, **arguments)
    assert torch.equal(rotary_scores(last, q, k, 5), scores)
    content, values = (x.expand(1, 1, 5, -1) for x in (q, k)), torch.eye(5, dtype=F64)[None, None]
    weights = attention(*content, values, positional=Positional(queries_keys=rotary))[0, 0, -1]
    torch.testing.assert_close(weights.flip(0), (scores / rotary.head_dim**0.5).softmax(0))


@pytest.mark.parametrize(
    "positional", [Positional(), Positional(Sinusoidal(16)), Positional(scores=ALiBi(2))]
)
def test_positions_alone_tell_orders_apart(positional):
    torch.manual_seed(0)
    x = torch.randn(5, 16, dtype=F64)
    made = Encoder(16, 2, 2, positional=positional).double().eval()
    order = torch.tensor([3, 0, 4, 1, 2])
    effect, same = order_effect(made, x, order), order_effect(made, x, range(5))
    assert effect.tells_apart(1e-3) is bool(positional.tokens or positional.scores)
    assert max(effect.attention_difference, effect.output_difference) < 1e-12 or (
        min(effect.attention_difference, effect.output_difference) > 1e-3
    )
    assert same.attention_difference == same.output_difference == 0.0
    with pytest.raises(ValueError, match="order"):
        order_effect(made, x, [0, 0, 1, 2, 3])
