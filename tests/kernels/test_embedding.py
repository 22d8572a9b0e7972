"""Embedding, scale, table and dropout in one pass, against torch's own lookup."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from posenc import Sinusoidal
from posenc.kernels.addition import cpu as native
from posenc.kernels.addition import reference as of_sums
from posenc.kernels.embedding import reference
from posenc.kernels.embedding.operator import embedded
from posenc.kernels.library import library
from posenc.kernels.philox import drawn
from posenc.transformer import TokenEmbedding


def seeded(function, *arguments, **named):
    torch.manual_seed(5)
    return function(*arguments, **named)


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.float64]),
    scale=st.sampled_from([None, 22.627416997969522]), dropout=st.sampled_from([0.0, 0.3]),
    rows=st.sampled_from(["none", "shared", "each", "looked up"]),
    padding_idx=st.sampled_from([None, 3]),
)  # fmt: skip
def test_values_and_gradients_are_the_bits_of_the_reference(
    dtype, scale, dropout, rows, padding_idx
):
    weight = torch.randn(7, 70).to(dtype).requires_grad_()
    ids = torch.randint(7, (3, 5))
    wide = torch.promote_types(dtype, torch.float32)
    shape = {"none": None, "shared": (5, 70), "each": (3, 5, 70), "looked up": (9, 70)}[rows]
    table = None if shape is None else torch.randn(shape, dtype=wide)
    positions = torch.randint(9, (3, 5)) if rows == "looked up" else None
    given = {"scale": scale, "padding_idx": padding_idx}
    made = seeded(embedded, ids, weight, table, positions, dropout=dropout, **given)
    dropping = seeded(drawn, dropout)
    want = reference.embedded(ids, weight, table, positions, dropping=dropping, **given)
    assert torch.equal(made, want)
    gradient = torch.randn(3, 5, 70).to(dtype)
    got, expected = (torch.autograd.grad(y, weight, gradient)[0] for y in (made, want))
    assert torch.equal(got, expected)
    with torch.no_grad():
        assert torch.equal(
            seeded(embedded, ids, weight, table, positions, dropout=dropout, **given), want
        )


def test_first_and_second_derivatives_are_right():
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    ids, table = torch.tensor([[0, 1, 1], [3, 3, 3]]), torch.randn(3, 3, dtype=torch.float64)

    def run(weight):
        return seeded(embedded, ids, weight, table, scale=1.7, dropout=0.4)

    assert torch.autograd.gradcheck(run, weight)
    assert torch.autograd.gradgradcheck(lambda w: run(w).sin(), weight)


def test_a_table_that_learns_gets_its_gradient():
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    rows = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    ids, positions = torch.tensor([[0, 1, 1]]), torch.tensor([8, 8, 0])
    run = lambda w, t: embedded(ids, w, t, positions, scale=2.0)  # noqa: E731
    assert torch.autograd.gradcheck(run, (weight, rows))


def test_a_token_embedding_adds_what_the_encoding_adds():
    embedding = TokenEmbedding(50, 16, scale="sqrt_dim", padding_idx=0)
    encoding, ids = Sinusoidal(16), torch.randint(50, (2, 5))
    with torch.no_grad():
        want = encoding(embedding(ids))
        assert torch.equal(embedding(ids), F.embedding(ids, embedding.weight) * 4.0)
        table = encoding.table(torch.arange(20))
        assert torch.equal(embedding(ids, table[:5]), want)
        assert torch.equal(embedding(ids, table, torch.arange(5)), want)
        room = torch.empty(2, 5, 16)
        assert embedding(ids, table[:5], out=room) is room
        assert torch.equal(room, want)
        half = seeded(embedding, ids, table[:5], dropout=0.5)
        assert torch.equal(half[half != 0], 2 * want[half != 0])


@pytest.mark.skipif(library() is None, reason="no native library was built")
def test_it_runs_in_c_forward_and_backward(monkeypatch):
    monkeypatch.setattr(reference, "embedded", None)
    monkeypatch.setattr(of_sums, "gradient_of_x", None)
    embedding = TokenEmbedding(50, 16, scale="sqrt_dim", padding_idx=0)
    made = embedding(torch.randint(50, (2, 5)), torch.randn(5, 16), dropout=0.5)
    made.square().sum().backward()
    assert embedding.weight.grad is not None


def test_ids_outside_are_refused():
    weight, table = torch.randn(7, 4), torch.randn(3, 4)
    for wrong in (7, -1):
        with pytest.raises(IndexError, match=r"out of range|past the last of 7 vectors"):
            embedded(torch.tensor([0, 1, wrong]), weight, table)


@pytest.mark.parametrize("recorded", [False, True])
def test_positions_without_a_table_are_refused(recorded):
    weight = torch.ones(3, 4, requires_grad=recorded)
    with pytest.raises(ValueError, match="positions were given and no table"):
        embedded(torch.tensor([0, 1]), weight, None, torch.tensor([0, 1]))


def test_without_c_everything_is_the_same(monkeypatch):
    weight, ids, table = torch.randn(7, 33), torch.randint(7, (2, 5)), torch.randn(5, 33)
    made = seeded(embedded, ids, weight, table, scale=3.0, dropout=0.5)
    monkeypatch.setattr(native, "_native", lambda: None)
    assert torch.equal(seeded(embedded, ids, weight, table, scale=3.0, dropout=0.5), made)


@pytest.mark.compiles
def test_a_compiled_graph_has_no_break():
    embedding, ids = TokenEmbedding(50, 16, scale="sqrt_dim"), torch.randint(50, (2, 5))
    torch.compiler.reset()
    run = torch.compile(embedding, fullgraph=True, backend="aot_eager")
    table = torch.randn(5, 16)
    torch.testing.assert_close(run(ids, table), embedding(ids, table))
