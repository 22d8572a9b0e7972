"""Scores, tables, queries and keys are of the same tokens: what broadcasts is refused, or meant."""

import pytest
import torch
from torch import Tensor

from posenc import (
    CABLE,
    DAPE,
    ALiBi,
    CoPE,
    DAPEv2,
    KERPLEWeight,
    RelativeLogits,
    Rotary,
    ScoreEncoding,
    SelectiveRoPE,
    Shaw,
    Temperature,
    TransformerXL,
)
from posenc.encodings.scores.forgetting import forgetting_bias

HERE, Q = torch.arange(4), torch.randn(2, 2, 4, 8)
SCORES, HIDDEN = torch.randn(2, 2, 4, 4), torch.randn(2, 4, 6)
REFUSED = "Pass the positions of these queries and keys"


def encode(encoding, scores=SCORES, table=None, q=Q, k=Q, **more):
    table = encoding.table(HERE, HERE) if table is None else table
    return encoding.encode(scores, table, q=q, k=k, **more)


@pytest.mark.parametrize(
    "encoding",
    [
        ALiBi(2),
        CoPE(2, 8, 3, std=1.0),
        DAPE(2, ALiBi(2)),
        DAPEv2(2, ALiBi(2)),
        KERPLEWeight(2),
        Shaw(2, 8, 2),
        Temperature(2, 3),
        TransformerXL(2, 8),
    ],
    ids=lambda encoding: type(encoding).__name__,
)
def test_a_table_serves_the_rows_of_a_batch_and_no_others(encoding):
    table = encoding.table(HERE, HERE)
    whole = encode(encoding)
    for rows in (table[None], table.expand(2, *table.shape)):
        torch.testing.assert_close(encode(encoding, table=rows), whole)
    for other in (table.expand(3, *table.shape), table.expand(1, 2, *table.shape)):
        with pytest.raises(ValueError, match=REFUSED):
            encode(encoding, table=other)
    with pytest.raises(ValueError, match=REFUSED):  # one row of scores, three of a table
        encode(encoding, SCORES[:1], table.expand(3, *table.shape), q=Q[:1], k=Q[:1])
    apart = torch.vmap(lambda s, q, k: encoding.encode(s, table, q=q, k=k))(SCORES, Q, Q)
    torch.testing.assert_close(apart, whole)
    meta = [x.to("meta") for x in (SCORES, table[..., :1, :], Q, Q)]
    with pytest.raises(ValueError, match=REFUSED):  # no number is looked at
        encode(encoding.to("meta"), *meta)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"q": Q[..., :1, :]}, r"q has shape \(2, 2, 1, 8\) and scores \(2, 2, 4, 4\), for which"),
        ({"q": Q[:1]}, r"TransformerXL takes \[2, 2, 4, 8\]. Pass the queries whose products"),
        ({"q": Q[:, :1]}, r"q has shape \(2, 1, 4, 8\)"),
        ({"q": Q[0]}, r"q has shape \(2, 4, 8\)"),
        ({"k": Q[:, :, :1]}, r"takes \[2, kv_heads, 4, 8\]. Pass the keys whose products"),
        ({"k": Q.repeat(1, 2, 1, 1)}, "k has 4 heads, which cannot serve 2 query heads evenly"),
        ({"k": Q[:, :0]}, "k has 0 heads, which cannot serve 2 query heads evenly"),
        ({"k": torch.cat((Q, Q))}, r"k has shape \(4, 2, 4, 8\)"),
        ({"scores": torch.zeros(4, 4)}, r"scores have shape \(4, 4\); .* \[\*batch, heads, q_len"),
    ],
)
def test_content_of_other_tokens_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        encode(TransformerXL(2, 8), **given)


def test_scores_have_heads_queries_and_keys():
    for scores in (torch.zeros(4), torch.zeros(4, 4)):
        with pytest.raises(ValueError, match=r"; Shaw takes \[\*batch, heads, q_len, k_len\]"):
            Shaw(2, 8, 2)(scores, q=Q)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_what_is_not_real_is_refused(dtype):
    table = Shaw(2, 8, 2).table(HERE, HERE)
    with pytest.raises(TypeError, match=f"scores are {dtype}; Shaw takes floating ones"):
        encode(Shaw(2, 8, 2), SCORES.to(dtype))
    with pytest.raises(TypeError, match=f"q is {dtype}; Shaw takes floating numbers"):
        encode(Shaw(2, 8, 2), q=Q.to(dtype))
    with pytest.raises(TypeError, match=f"weights are {dtype}"):
        Shaw(2, 8, 2, values=True).encode_output(Q, SCORES.to(dtype), table)
    with pytest.raises(TypeError, match=f"Values are {dtype}"):
        Shaw(2, 8, 2, values=True).encode_output(Q.to(dtype), SCORES, table)
    with pytest.raises(TypeError, match=f"The hidden state is {dtype}"):
        CABLE(2, 6).key_features(HIDDEN.to(dtype))
    with pytest.raises(TypeError, match=f"The table is {dtype}; ALiBi takes floating numbers"):
        encode(ALiBi(2), table=ALiBi(2).table(HERE, HERE).to(dtype))


def test_a_table_of_the_other_kind_of_numbers_is_refused():
    with pytest.raises(TypeError, match=r"float32; Shaw takes whole numbers, int64. Pass what its"):
        encode(Shaw(2, 8, 2), table=torch.zeros(4, 4))


@pytest.mark.parametrize(
    ("encoding", "side", "width"),
    [
        (CABLE(2, 6), "k", 2),
        (RelativeLogits(2, 6, 3, 5), "q", 6),
        (SelectiveRoPE(2, Rotary(8), 6), "k", 8),
    ],
)
def test_what_was_read_of_other_tokens_is_refused(encoding, side, width):
    for shape in ((2, 1, width), (2, 5, width), (1, 4, width), (4, width)):
        with pytest.raises(ValueError, match=rf"{side}_features have shape \({shape[0]}, "):
            encode(encoding, **{f"{side}_features": torch.randn(shape)})
    features = torch.ones(2, 4, width, dtype=torch.int64)
    with pytest.raises(TypeError, match=rf"{side}_features are torch.int64"):
        encode(encoding, **{f"{side}_features": features})


def test_the_gates_of_cope_are_one_for_each_of_the_scores():
    for gates in (SCORES[:, :, :1], SCORES[..., :1], SCORES[:1], SCORES[0]):
        with pytest.raises(ValueError, match="CoPE takes one number for each of the scores"):
            encode(CoPE(2, 8, 3), gates=gates)
    with pytest.raises(TypeError, match=r"gates are torch\.int64"):
        encode(CoPE(2, 8, 3), gates=SCORES.long())


def test_values_are_summed_at_their_own_keys():
    gates = -torch.rand(2, 4)
    for positions in (range(5), range(1)):
        with pytest.raises(ValueError, match=r"values have shape \(2, 1, 4\) and distances"):
            forgetting_bias(gates, range(4), positions)
    with pytest.raises(ValueError, match="there is one value for each of 4 keys"):
        forgetting_bias(gates[:, :1], range(4), range(4))
    table = CoPE(2, 8, 3).table(HERE, HERE)
    with pytest.raises(ValueError, match="for each of 1 × 4 pairs"):
        CoPE(2, 8, 3).positions(SCORES, table[:1])


def test_output_comes_from_its_own_weights():
    shaw = Shaw(2, 8, 2, values=True)
    table = shaw.table(HERE, HERE)
    for other in (table[:1], table[:, :1], table.expand(3, 4, 4)):
        with pytest.raises(ValueError, match=r"weights have shape \(2, 2, 4, 4\) and the table"):
            shaw.encode_output(Q, SCORES, other)
    for out in (Q[:, :, :1], Q[:1], Q[:, :1]):
        with pytest.raises(ValueError, match="Pass the weights that it came from"):
            shaw.encode_output(out, SCORES, table)


class Unnamed(ScoreEncoding):
    """Its table is one number a head, and its signature names no axes."""

    heads, is_relative, is_pairwise = 2, True, True

    def table(self, q_positions, k_positions, *, dtype=None):
        return torch.ones(2)

    def encode(self, scores: Tensor, table: Tensor, *, q=None, k=None, scale=None) -> Tensor:
        return scores * table[:, None, None]


def test_a_signature_without_axes_is_not_held_to_any():
    torch.testing.assert_close(Unnamed()(SCORES), SCORES)
