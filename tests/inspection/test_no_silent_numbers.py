"""Numbers about encodings, where arithmetic rounds, factors multiply or arguments are odd."""

import math

import numpy as np
import pytest
import torch

from posenc import (
    DINOv3Rotary,
    LTXRotary,
    Positional,
    Randomized,
    Rotary,
    Sinusoidal,
    T5Bias,
    VJEPA2Rotary,
    attention,
)
from posenc.frequencies import Clipped, FromCheckpoint, Geometric, YaRN
from posenc.inspection.attention import attention_effect, rotary_scores
from posenc.inspection.binary import period_ratio
from posenc.inspection.directions import frequency_vectors
from posenc.inspection.lengths import length_statistics
from posenc.inspection.norms import columns_that_move, norm_shares
from posenc.inspection.order import order_effect
from posenc.inspection.resolution import resolution
from posenc.inspection.scaling import scaling_of
from posenc.inspection.shift import shift_map
from posenc.inspection.similarity import closest_pair, unique_up_to
from posenc.plots import rotary_score
from posenc.transformer import Encoder


@pytest.mark.parametrize("convention", ["paper", "per_dimension"])
def test_the_closest_pair_of_rounded_angles_is_that_of_brute_force(convention):
    encoding = Sinusoidal(8, convention=convention, offset=100_000, arithmetic="float32")
    rows = encoding.table(torch.arange(45), dtype=torch.float64)
    away = (rows.unsqueeze(0) - rows.unsqueeze(1)).norm(dim=-1)
    away.fill_diagonal_(torch.inf)
    assert closest_pair(encoding, 45).distance == pytest.approx(away.min().item(), rel=1e-12)


def test_rounded_angles_are_no_rotation():
    shift = shift_map(Sinusoidal(8, arithmetic="float32"), 2**40, length=50)
    assert not shift.exact
    assert "rounded to float32" in shift.reason


def test_rotary_scores_are_those_of_attention():
    """Of a schedule with an attention factor, which multiplies queries and keys."""
    rotary = Rotary(YaRN(Geometric(8), 4.0, trained_length=64))
    q, k = torch.randn(2, 8, dtype=torch.float64)
    content = q.expand(1, 1, 5, 8), k.expand(1, 1, 5, 8)
    turned_q, turned_k = rotary(*content, torch.arange(5))
    scores = rotary_scores(rotary, q, k, 5)
    torch.testing.assert_close(scores, (turned_q @ turned_k.mT)[0, 0, :, 0])
    values = torch.eye(5, dtype=torch.float64).expand(1, 1, 5, 5)
    weights = attention(*content, values, positional=Positional(queries_keys=rotary))[0, 0, -1]
    torch.testing.assert_close(weights.flip(0), (scores / 8**0.5).softmax(0))


def test_the_figure_of_rotary_scores_has_their_sign():
    """Its axis is query − key, so two steps to the right the query stands two behind the key."""
    rotary, (q, k) = Rotary(8), torch.randn(2, 8, dtype=torch.float64)
    drawn = rotary_score(rotary_scores(rotary, q, k, 3)).lines[0]
    at = [torch.tensor([place]) for place in (2, 0)]
    query, key = (
        rotary.encode_queries(x.view(1, 1, 8), rotary.table(where, dtype=torch.float64)).flatten()
        for x, where in zip((q, k), at, strict=True)
    )
    assert drawn.get_xdata()[2] == 2
    assert drawn.get_ydata()[2] == pytest.approx((query @ key).item())


def test_positions_that_are_drawn_have_no_one_effect():
    q = torch.randn(2, 3, 8)
    drawn = Positional(queries_keys=Rotary(8), positions=Randomized(64))
    with pytest.raises(ValueError, match=r"changes positions by .*Randomized"):
        attention_effect(q, q, drawn)


def test_rows_are_counted_in_the_dtype_itself():
    """Rows that differ by less than float32 tells apart."""

    class Slow(Sinusoidal):
        def table(self, positions, *, dtype=None, out=None):
            whole = positions.double().unsqueeze(-1) * 1e-9 + 1.0
            return whole.expand(*positions.shape, 2).to(dtype or torch.float32)

    assert unique_up_to(Slow(2), 100, dtype=torch.float64) == 100
    assert resolution(Slow(2), 100, dtype=torch.float64).rows == 100
    assert unique_up_to(Slow(2), 100) == 2  # 1 and its neighbor in float32


def test_lengths_are_whole_numbers_of_any_size():
    found = length_statistics(np.array([100, 100], dtype=np.int8))
    assert (found.tokens, type(found.tokens)) == (200, int)
    assert length_statistics(torch.tensor([3, 70])).longest == 70
    for odd in ([2.5], [float("nan")]):
        with pytest.raises(TypeError):
            length_statistics(odd)


def test_lengths_of_rows_in_float16_do_not_overflow():
    x = torch.full((3, 8), 200.0, dtype=torch.float16)
    shares = norm_shares(x, x)
    torch.testing.assert_close(shares.share, torch.full((3,), 0.5))
    torch.testing.assert_close(shares.total, torch.full((3,), 400 * 8**0.5))


def test_dropout_is_no_effect_of_order():
    with pytest.raises(ValueError, match=r"Call encoder\.eval\(\)"):
        order_effect(Encoder(8, 2, 1, dropout=0.5), torch.randn(3, 8), [0, 1, 2])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"is_causal": True}, "built with is_causal"),
        ({"window": 2}, "built with window"),
        ({"positional": Positional(positions=Randomized(9))}, "at each call anew"),
    ],
)
def test_what_orders_tokens_besides_an_encoding_is_refused(options, told):
    """Without an encoding these already part the two orders, which were taken for its effect."""
    with pytest.raises(ValueError, match=told):
        order_effect(Encoder(8, 2, 1, **options).eval(), torch.randn(3, 8), [2, 0, 1])


def test_a_part_in_training_is_seen_by_the_effect_of_order():
    encoder = Encoder(8, 2, 1, dropout=0.5).eval()
    encoder.blocks[0].train()
    with pytest.raises(ValueError, match=r"encoder\.eval\(\)"):
        order_effect(encoder, torch.randn(3, 8), [0, 1, 2])


@pytest.mark.parametrize(
    "encoding", [DINOv3Rotary(8, (4, 4)), LTXRotary(8, 2, (20, 20)), LTXRotary(8, 2, (2,))]
)
def test_vectors_of_what_turns_by_the_place_in_a_grid_are_refused(encoding):
    """Their schedules hold radians a half-patch or a half-grid, which were given as a patch."""
    with pytest.raises(TypeError, match="by a product with points"):
        frequency_vectors(encoding)


def test_vectors_of_v_jepa_are_those_of_its_table():
    encoding, points = VJEPA2Rotary(24), torch.tensor([[2, 0, 5], [1, 3, 4]])
    angles = points.double() @ frequency_vectors(encoding).mT
    cos, sin = encoding.table(points, dtype=torch.float64).unbind(-2)
    torch.testing.assert_close(torch.stack((cos, sin)), torch.stack((angles.cos(), angles.sin())))


def test_columns_that_move_are_those_of_tokens_and_not_of_rows_of_a_batch():
    table = Sinusoidal(8).table(torch.arange(50))
    with pytest.raises(ValueError, match="one row of a batch"):
        columns_that_move(table.expand(3, 50, 8))
    with pytest.raises(ValueError, match=r"shape \(0, 8\)"):
        columns_that_move(table[:0])


def test_positions_beyond_the_numbers_of_a_dtype_are_no_resolution():
    with pytest.raises(ValueError, match=r"69999 is infinite in torch\.float16"):
        resolution(Sinusoidal(8), 70_000, dtype=torch.float16)


def test_documents_without_tokens_meet_no_bucket():
    bias = T5Bias(2)
    assert length_statistics([0, 0], bias=bias).buckets_never_met == tuple(range(bias.buckets))
    assert 0 not in length_statistics([0, 1], bias=bias).buckets_never_met


def test_pairs_that_no_longer_turn_are_stretched_the_most():
    plain = Geometric(8)
    bands = scaling_of(plain, Clipped(plain, 100), trained_length=100, target_length=400)
    assert bands.bands == ("kept", "mixed", "mixed", "stretched")
    back = scaling_of(Clipped(plain, 100), plain, trained_length=100, target_length=400)
    assert back.bands[-1] == "mixed"


@pytest.mark.parametrize("shape", [(5, 8), (1, 8), (4,)])
def test_rotary_scores_are_of_one_query_and_one_key(shape):
    rotary, vector = Rotary(8), torch.ones(8)
    for q, k in ((torch.ones(shape), vector), (vector, torch.ones(shape))):
        with pytest.raises(ValueError, match="one vector of 8 numbers"):
            rotary_scores(rotary, q, k, 5)


def test_a_token_without_any_length_has_no_share():
    shares = norm_shares(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.zeros(2, 2))
    assert shares.share[0].isnan()
    assert shares.share[1] == 0


def test_a_pair_that_stands_still_is_infinitely_slower_than_one_that_turns():
    ratios = period_ratio(FromCheckpoint(torch.tensor([1.0, 0.0, 0.0])))
    assert ratios[0] == math.inf
    assert math.isnan(ratios[1])


def test_ranges_of_narrow_whole_numbers_are_refused():
    """From −100 to 100 int8 has −56."""
    with pytest.raises(TypeError, match=r"torch.int8; it must be floating"):
        columns_that_move(torch.tensor([[-100], [100]], dtype=torch.int8))
    with pytest.raises(TypeError, match=r"torch.complex64; it must be floating"):
        norm_shares(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.complex64))


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_shares_hold_where_squares_leave_float32(size):
    found = norm_shares(torch.full((1, 4), size), torch.full((1, 4), size))
    assert found.share.tolist() == [0.5]
    assert found.embedding.item() == pytest.approx(2 * size, rel=1e-6)
    assert found.total.item() == pytest.approx(4 * size, rel=1e-6)


def test_the_effect_on_wide_queries_is_wide():
    q, rotary = torch.randn(4, 4, 8, dtype=torch.float64), Rotary(8)
    found = attention_effect(q, q, Positional(queries_keys=rotary))
    turned = rotary.encode_queries(q, rotary.table(torch.arange(4), dtype=torch.float64))
    wanted = (turned @ turned.mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(found.with_encoding, wanted, rtol=1e-12, atol=1e-14)


def test_an_effect_in_another_layout_is_refused():
    """As many heads as tokens fit either way."""
    q = torch.randn(4, 4, 8)
    with pytest.raises(ValueError, match="was built with heads_first=False"):
        attention_effect(q, q, Positional(queries_keys=Rotary(8, heads_first=False)))


def test_pairs_that_turn_backwards_count_as_others():
    schedules = [FromCheckpoint(torch.tensor([1.0, sign * 1e-6])) for sign in (1, -1)]
    forth, back = (scaling_of(s, s, trained_length=100, target_length=200) for s in schedules)
    assert (back.unseen, back.unseen_after, back.turns) == (1, 1, forth.turns)
