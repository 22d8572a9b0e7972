"""Numbers about encodings, where arithmetic rounds, factors multiply or arguments are odd."""

import numpy as np
import pytest
import torch

from posenc import (
    Positional,
    Randomized,
    Rotary,
    Sinusoidal,
    attention,
)
from posenc.frequencies import Geometric, YaRN
from posenc.inspection.attention import attention_effect, rotary_scores
from posenc.inspection.lengths import length_statistics
from posenc.inspection.norms import norm_shares
from posenc.inspection.order import order_effect
from posenc.inspection.precision import precision_of
from posenc.inspection.resolution import resolution
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
    with pytest.raises(TypeError):
        precision_of(Geometric(8), 2.5)


def test_lengths_of_rows_in_float16_do_not_overflow():
    x = torch.full((3, 8), 200.0, dtype=torch.float16)
    shares = norm_shares(x, x)
    torch.testing.assert_close(shares.share, torch.full((3,), 0.5))
    torch.testing.assert_close(shares.total, torch.full((3,), 400 * 8**0.5))


def test_dropout_is_no_effect_of_order():
    with pytest.raises(ValueError, match=r"Call encoder\.eval\(\)"):
        order_effect(Encoder(8, 2, 1, dropout=0.5), torch.randn(3, 8), [0, 1, 2])
