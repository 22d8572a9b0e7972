"""Learned: rows of a table, held against the models of transformers that look rows up."""

import copy
import re

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, RobertaConfig
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

from posenc import Learned
from posenc.positions import consecutive, left_padded


def refused(text, error=ValueError):
    return pytest.raises(error, match=re.escape(text))


def filled(encoding, weight):
    with torch.no_grad():
        encoding.weight.copy_(weight)
    return encoding


# Against the models of others, with their weights.


def test_offset_2_is_opt():
    theirs = OPTLearnedPositionalEmbedding(20, 8)
    ours = filled(Learned(8, 20, offset=2), theirs.weight)
    assert ours.weight.shape == theirs.weight.shape == (22, 8)
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    real = mask == 1
    assert torch.equal(ours.table(left_padded(mask))[real], theirs(mask)[real])
    step = theirs(torch.ones(1, 8, dtype=torch.long), past_key_values_length=7)
    assert torch.equal(ours.table(torch.tensor([[7]])), step)


def test_offset_2_is_roberta():
    """RoBERTa counts from its padding index + 1, over real tokens alone."""
    config = RobertaConfig(
        vocab_size=11, hidden_size=8, num_attention_heads=2, max_position_embeddings=14
    )
    theirs = RobertaEmbeddings(config).eval()
    ours = filled(Learned(8, 12, offset=2), theirs.position_embeddings.weight)
    ids = torch.tensor([[4, 5, 6, 7], [4, 5, 1, 1], [1, 1, 8, 9]])
    real = ids != 1
    words = theirs.word_embeddings(ids) + theirs.token_type_embeddings.weight[0]
    got = theirs.LayerNorm(ours(words, left_padded(real)))
    assert torch.allclose(got[real], theirs(ids)[real], atol=1e-6)


def test_no_offset_is_bert():
    config = BertConfig(
        vocab_size=11, hidden_size=8, num_attention_heads=2, max_position_embeddings=16
    )
    theirs = BertEmbeddings(config).eval()
    ours = filled(Learned(8, 16), theirs.position_embeddings.weight)
    ids = torch.tensor([[4, 5, 6, 7, 8], [1, 2, 3, 4, 5]])
    words = theirs.word_embeddings(ids) + theirs.token_type_embeddings.weight[0]
    assert torch.allclose(theirs.LayerNorm(ours(words)), theirs(ids), atol=1e-6)


# The rows themselves.


def test_a_table_is_rows_of_the_weight():
    encoding = Learned(4, 10, offset=3)
    positions = torch.tensor([[0, 9], [5, 5]])
    assert torch.equal(encoding.table(positions), encoding.weight[positions + 3])


@pytest.mark.parametrize("std", [0.02, 0.5, 0.0])
def test_rows_are_drawn_from_a_normal_distribution(std):
    torch.manual_seed(0)
    weight = Learned(256, 1024, std=std).weight.detach() / (std or 1.0)
    # 262144 draws: five standard deviations of each moment.
    spread = 1.0 if std else 0.0
    assert weight.mean().item() == pytest.approx(0.0, abs=5 / 512)
    assert weight.std().item() == pytest.approx(spread, abs=5 / 724)
    assert (weight**4).mean().item() == pytest.approx(3 * spread, abs=5 * 96**0.5 / 512)


def test_drawing_anew_is_reproducible():
    torch.manual_seed(3)
    encoding = Learned(8, 16)
    first = encoding.weight.detach().clone()
    encoding.reset_parameters()
    assert not torch.equal(encoding.weight, first)
    torch.manual_seed(3)
    encoding.reset_parameters()
    assert torch.equal(encoding.weight, first)


def test_the_gradient_reaches_the_rows_that_were_used():
    encoding = Learned(4, 10, offset=2)
    x = torch.zeros(2, 3, 4)
    encoding(x, torch.tensor([[0, 4, 4], [0, 1, 2]])).sum().backward()
    uses = torch.tensor([0, 0, 2, 1, 1, 0, 2, 0, 0, 0, 0, 0])
    assert torch.equal(encoding.weight.grad, uses[:, None].float().expand(12, 4))


def test_a_step_of_training_moves_the_rows_that_were_used():
    encoding = Learned(4, 6)
    before = encoding.weight.detach().clone()
    optimizer = torch.optim.SGD(encoding.parameters(), lr=0.1)
    encoding(torch.zeros(1, 2, 4)).square().sum().backward()
    optimizer.step()
    moved = (encoding.weight != before).all(dim=1)
    assert moved.tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_content_keeps_its_dtype(dtype):
    encoding = Learned(8, 10)
    x = torch.randn(2, 5, 8).to(dtype)
    wide = torch.promote_types(dtype, torch.float32)
    expected = (x.to(wide) + encoding.weight[:5].to(wide)).to(dtype)
    assert torch.equal(encoding(x), expected)
    assert encoding.table(consecutive(5)).dtype == torch.float32
    assert encoding.table(consecutive(5), dtype=dtype).dtype == dtype


def test_a_state_dict_goes_round():
    one, other = Learned(8, 16, offset=2), Learned(8, 16, offset=2)
    assert list(one.state_dict()) == ["weight"]
    assert not torch.equal(one.weight, other.weight)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert torch.equal(one.table(consecutive(16)), other.table(consecutive(16)))
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        Learned(8, 17, offset=2).load_state_dict(one.state_dict())


# Another length.


@pytest.mark.parametrize("length", [1, 7, 24, 25, 48, 100])
def test_resizing_is_torchs_interpolation(length):
    encoding = Learned(6, 24).double()  # in float32, places between rows are rounded
    columns = encoding.weight.detach().T[None]
    if length >= 24:
        expected = F.interpolate(columns, size=length, mode="linear")[0].T
    else:  # only the two-dimensional form knows antialiasing
        image = F.interpolate(
            columns[:, :, None], size=(1, length), mode="bilinear", antialias=True
        )
        expected = image[0, :, 0].T
    resized = encoding.resized(length)
    assert resized.max_len == length
    torch.testing.assert_close(resized.weight.detach(), expected, rtol=0, atol=1e-14)


def test_resizing_to_the_same_length_changes_nothing():
    encoding = Learned(6, 24, offset=2)
    assert torch.equal(encoding.resized(24).weight, encoding.weight)


def test_doubling_by_hand():
    """Cells are halved, so a new row stands a quarter of a cell from an old one."""
    encoding = filled(Learned(1, 3), torch.tensor([[0.0], [4.0], [8.0]]))
    assert encoding.resized(6).weight.flatten().tolist() == [0, 1, 3, 5, 7, 8]


def test_a_line_stays_a_line_and_a_constant_a_constant():
    """Linear interpolation keeps what is linear, away from the ends that have no outer half."""
    line = filled(Learned(1, 40), torch.arange(40.0)[:, None])
    steps = line.resized(80).weight.flatten().diff()[1:-1]
    assert torch.allclose(steps, torch.full_like(steps, 0.5), atol=1e-5)
    flat = filled(Learned(2, 40), torch.full((40, 2), 0.25))
    for length in (3, 39, 41, 1000):
        assert torch.allclose(flat.resized(length).weight, torch.tensor(0.25), atol=1e-6)


@pytest.mark.parametrize("length", [5, 40])
def test_rows_before_the_offset_are_no_positions_and_stay(length):
    encoding = Learned(6, 20, offset=3)
    resized = encoding.resized(length)
    assert resized.weight.shape == (length + 3, 6)
    assert torch.equal(resized.weight[:3], encoding.weight[:3])
    bare = filled(Learned(6, 20), encoding.weight[3:])
    assert torch.equal(resized.weight[3:], bare.resized(length).weight)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_weights_are_interpolated_in_float32(dtype):
    encoding = Learned(6, 20).to(dtype)
    resized = encoding.resized(33)
    wide = filled(Learned(6, 20), encoding.weight.float()).resized(33).weight
    assert resized.weight.dtype == dtype
    assert torch.equal(resized.weight, wide.to(dtype))


def test_what_is_resized_keeps_its_ways():
    encoding = Learned(6, 20, offset=1, std=0.1, dropout=0.2, batch_first=False).eval()
    resized = encoding.resized(40)
    assert (resized.offset, resized.std, resized.dropout) == (1, 0.1, 0.2)
    assert not resized.batch_first
    assert not resized.training
    assert resized.weight.requires_grad
    assert resized.weight.is_leaf
    assert encoding.max_len == 20


# What it refuses.


def test_a_position_outside_is_refused():
    encoding = Learned(8, 512, offset=2)
    for positions in ([3, 512], [[0, -1]], [2**63 - 1]):
        with refused("the table has 512 rows", IndexError):
            encoding.table(positions)
    assert encoding.table(consecutive(0)).shape == (0, 8)


def test_content_that_does_not_fit():
    encoding = Learned(8, 16)
    with refused("rows given to Learned have (5, 8)"):
        encoding(torch.zeros(2, 5, 6))
    with refused("positions are torch.float32; they must be integers", TypeError):
        encoding.table(torch.zeros(3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Learned(0, 4), "dim is 0; it must be a whole number from 1 on."),
        (lambda: Learned(4, 4.0), "max_len is 4.0; it must be a whole number from 1 on."),
        (lambda: Learned(4, 4, offset=-1), "offset is -1; it must be a whole number from 0 on."),
        (lambda: Learned(4, 4, std=-0.1), "std is -0.1; it must be a finite number from 0 on."),
        (lambda: Learned(4, 4, dropout=2), "dropout is 2; it must be a probability between 0"),
    ],
)
def test_what_cannot_be_built(make, text):
    with refused(text):
        make()


def test_it_claims_nothing():
    """Rows as they are drawn have no common length and no map that shifts them."""
    encoding = Learned(4, 400)
    assert not encoding.keeps_norm
    assert not encoding.keeps_shift
    rows = encoding.weight.detach().double()
    assert rows.norm(dim=-1).std() > 1e-3
    best = torch.linalg.lstsq(rows[:-1], rows[1:]).solution
    assert (rows[:-1] @ best - rows[1:]).abs().max() > 1e-2
