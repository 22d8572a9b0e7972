"""Content, tables and rows that an encoding cannot mean are refused, not cut off or wrapped."""

import pytest
import torch

from posenc import (
    GRAPE,
    ALiBi,
    AxialRotary,
    CayleySTRING,
    CoPE,
    CounterRotary,
    DirectedRotary,
    FoPE,
    LieRE,
    PoPE,
    QueryTemperature,
    Rotary,
    Shaw,
    Sinusoidal,
    StartTokenRotary,
    T5Bias,
    XPos,
    attention,
    move_keys,
)
from posenc.positions import NOWHERE, Coordinates, grid, prefixed
from posenc.transformer import Encoder

HERE = torch.arange(3)


@pytest.mark.parametrize(
    "encoding",
    [AxialRotary(8), XPos(Rotary(8)), CounterRotary(Rotary(8)), QueryTemperature(8, period=3)],
    ids=lambda encoding: type(encoding).__name__,
)
@pytest.mark.parametrize("rows", [[-1, 0, 1], [0, 1, 16]])
def test_rows_are_not_counted_from_the_end_of_a_kept_table(encoding, rows):
    q, places = torch.randn(1, 2, 3, 8), torch.arange(16)
    table = encoding.table(grid(4, 4) if isinstance(encoding, AxialRotary) else places)
    with pytest.raises(IndexError, match="negative or past the last row"):
        encoding.encode_both(q, q, table, torch.tensor(rows))
    with pytest.raises(TypeError, match=r"torch\.bool"):
        encoding.encode_both(q, q, table, torch.arange(16) > 3)


@pytest.mark.parametrize(
    ("encoding", "axes"),
    [
        (Rotary(8), 0),
        (Rotary(8, arithmetic="transformers"), 0),
        (StartTokenRotary(Rotary(8), Rotary(8, base=100), 2), 0),
        (AxialRotary(8), 2),
        (DirectedRotary(torch.randn(4, 2)), 2),
        (DirectedRotary(torch.randn(2, 4, 2)), 2),
        (FoPE(8, 2, 100), 0),
        (LieRE(8, 2, 2), 2),
        (PoPE(8, 2), 0),
        (QueryTemperature(8, period=3), 0),
        (XPos(Rotary(8)), 0),
    ],
)
def test_rows_are_not_taken_along_the_batch_of_a_table(encoding, axes):
    """Its second axis is as long as the content, so that nothing else would tell."""
    q, places = torch.randn(2, 2, 2, 8), torch.arange(4).view(2, 2)
    table = encoding.table(torch.stack([places] * axes, -1) if axes else places)
    for positions in (torch.tensor([0]), torch.tensor([1, 0]), torch.tensor([[0, 1]])):
        with pytest.raises(ValueError, match="holds one row a position"):
            encoding.encode_both(q, q, table, positions)
    encoding.encode_both(q, q, table.flatten(0, 1), places)


@pytest.mark.parametrize("encoding", [ALiBi(2), T5Bias(2), CoPE(2, 8, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool, torch.complex64])
def test_scores_that_would_cut_a_bias_off_are_refused(encoding, dtype):
    scores, q = torch.ones(1, 2, 3, 3).to(dtype), torch.ones(1, 2, 3, 8)
    with pytest.raises(TypeError, match="takes floating ones"):
        encoding(scores, HERE, HERE, q=q, k=q)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: Rotary(8)(x, x),
        lambda x: Rotary(8).encode_queries(x, Rotary(8).table(range(4))),
        lambda x: CayleySTRING(8).encode_queries(x, CayleySTRING(8).table(grid(2, 2))),
        lambda x: FoPE(8, 4, 100)(x, x),
        lambda x: GRAPE(8, 4)(x, x),
        lambda x: PoPE(8, 4)(x, x),
        lambda x: QueryTemperature(8)(x, x),
        lambda x: Sinusoidal(8)(x[0]),
        lambda x: Sinusoidal(8).encode(x[0], Sinusoidal(8).table(range(4))),
        lambda x: ALiBi(4)(x[..., :4]),
        lambda x: ALiBi(4).encode(x[..., :4], ALiBi(4).table(range(4), range(4))),
        lambda x: Shaw(4, 8, 3)(torch.zeros(1, 4, 4, 4), q=x, k=x),
        lambda x: attention(x, x, x),
        lambda x: Encoder(8, 2, 1)(x[0]),
    ],
)
def test_numbers_of_eight_bits_are_refused_in_words(call, dtype):
    with pytest.raises(TypeError, match=f"Content is {dtype}"):
        call(torch.ones(1, 4, 4, 8).to(dtype))


def test_one_row_of_a_bias_is_not_for_all_queries():
    bias, scores = ALiBi(2), torch.zeros(1, 2, 3, 3)
    table = bias.table(HERE, HERE)
    for part in (table[:, :1], table[:, :, :1]):
        with pytest.raises(ValueError, match="Pass the positions of these queries and keys"):
            bias.encode(scores, part)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_a_table_of_no_reals_is_refused(dtype):
    for encoding, x in ((Sinusoidal(8), torch.ones(3, 8)), (Rotary(8), torch.ones(2, 3, 8))):
        table = encoding.table(HERE).to(dtype)
        encode = encoding.encode if isinstance(encoding, Sinusoidal) else encoding.encode_queries
        with pytest.raises(TypeError, match="floating"):
            encode(x, table)


def test_tokens_that_stand_nowhere_are_moved_by_nothing():
    rotary, keys = AxialRotary(8), torch.randn(1, 2, 6, 8)
    points = prefixed(grid(2, 2), 2)
    encoded = rotary.encode_keys(keys, rotary.table(points))
    moved = points.clone()
    moved[:2] += 5  # other marks, of which each is nowhere
    moved[2:] += 3
    want = rotary.encode_keys(keys, rotary.table(moved))
    torch.testing.assert_close(move_keys(encoded, points, moved, rotary), want)
    for place in range(6):
        there = points.clone()
        there[place] = 1 if place < 2 else NOWHERE + 1
        with pytest.raises(ValueError, match="stands nowhere before or after"):
            move_keys(encoded, points, there, rotary)


def test_coordinates_that_stand_nowhere_are_moved_by_nothing():
    rotary, keys = AxialRotary(8), torch.randn(1, 2, 3, 8)
    halves = prefixed(Coordinates([[0.5, 1.0], [1.5, 2.0]]))
    quarters = prefixed(Coordinates([[0.25, 1.0], [1.5, 2.0]]))
    encoded, want = (rotary.encode_keys(keys, rotary.table(each)) for each in (halves, quarters))
    torch.testing.assert_close(move_keys(encoded, halves, quarters, rotary), want)
    with pytest.raises(ValueError, match="stands nowhere before or after"):
        move_keys(encoded, halves, Coordinates([[1, 1], [2, 2], [3, 3]]), rotary)
