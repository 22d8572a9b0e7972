"""Three embeddings and a norm in one pass, against transformers and against float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from posenc.kernels.embedding_norm import cpu as native
from posenc.kernels.embedding_norm.operator import embedding_norm
from posenc.kernels.library import library
from posenc.transformer import BertEmbeddings

needs_c = pytest.mark.skipif(library() is None, reason="no native library was built")


def exact(ids, weights, gamma, beta, eps):
    summed = sum(F.embedding(i, w.double()) for i, w in zip(ids, weights, strict=True))
    return F.layer_norm(summed, gamma.shape, gamma.double(), beta.double(), eps)


@needs_c
@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.float64]),
    batch=st.integers(1, 4), tokens=st.integers(1, 9), dim=st.integers(2, 70),
    shared=st.booleans(), alone=st.booleans(),
)  # fmt: skip
def test_it_is_within_rounding_of_float64(dtype, batch, tokens, dim, shared, alone):
    shape = (tokens,) if alone else (batch, tokens)
    ids = (
        torch.randint(9, shape),
        torch.randint(2, (*shape, 2))[..., 0],
        torch.arange(tokens) if shared else torch.randint(20, shape),
    )
    weights = tuple(torch.randn(rows, dim + 3).to(dtype)[:, :dim] for rows in (9, 2, 20))
    gamma, beta = torch.randn(2, dim).to(dtype)
    made = native.embedding_norm(ids, weights, gamma, beta, 1e-5)
    want = exact(ids, weights, gamma, beta, 1e-5)
    assert made.dtype == dtype
    # One rounding to the dtype, and a few of float32 on the way.
    unit = torch.finfo(dtype).eps
    on_the_way = 40 * torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    allowed = unit / 2 * want.abs() + on_the_way * 10 + torch.finfo(dtype).tiny
    assert ((made.double() - want).abs() <= allowed).all()


@needs_c
def test_large_results_are_streamed_to_the_last_byte():
    ids = (torch.randint(50, (9, 601)), torch.randint(2, (9, 601)), torch.arange(601))
    weights = tuple(torch.randn(rows, 1001) for rows in (50, 2, 601))
    gamma, beta = torch.randn(2, 1001)
    made = native.embedding_norm(ids, weights, gamma, beta, 1e-12)
    want = exact(ids, weights, gamma, beta, 1e-12).float()
    torch.testing.assert_close(made, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("recorded", [True, False])
def test_it_is_where_berts_of_transformers_begin(recorded):
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertEmbeddings as Theirs

    config = BertConfig(vocab_size=60, hidden_size=48, max_position_embeddings=32)
    theirs = Theirs(config).eval()
    ours = BertEmbeddings(48, vocabulary=60, max_len=32, padding_index=config.pad_token_id)
    for mine, other in (
        (ours.words, theirs.word_embeddings),
        (ours.token_types, theirs.token_type_embeddings),
        (ours.positions, theirs.position_embeddings),
        (ours.norm, theirs.LayerNorm),
    ):
        mine.load_state_dict(other.state_dict())
    torch.nn.init.normal_(ours.norm.weight)
    theirs.LayerNorm.load_state_dict(ours.norm.state_dict())
    ids, types = torch.randint(60, (3, 20)), torch.randint(2, (3, 20))
    places = torch.randint(32, (3, 20))
    with torch.set_grad_enabled(recorded):
        torch.testing.assert_close(ours(ids), theirs(ids), rtol=2e-5, atol=2e-6)
        got, want = ours(ids, types, places), theirs(ids, types, places)
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-6)
    if recorded:
        got.square().sum().backward()
        want.square().sum().backward()
        torch.testing.assert_close(ours.words.weight.grad, theirs.word_embeddings.weight.grad)


def test_gradients_are_right():
    weights = [torch.randn(4, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    gamma, beta = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    ids = (torch.tensor([[0, 1, 1]]), torch.tensor([[0, 0, 3]]), torch.arange(3))
    run = lambda *given: embedding_norm(ids, given[:3], given[3], given[4], 1e-5)  # noqa: E731
    assert torch.autograd.gradcheck(run, (*weights, gamma, beta))


@needs_c
def test_it_runs_in_c_without_gradients_and_elsewhere_in_torch(monkeypatch):
    taken = []
    run = native.embedding_norm
    monkeypatch.setattr(
        native, "embedding_norm", lambda *given: taken.append(run(*given)) or taken[-1]
    )
    embeddings, ids = BertEmbeddings(16, vocabulary=9, max_len=9), torch.randint(9, (2, 5))
    with torch.no_grad():
        made = embeddings(ids)
        assert taken.pop() is made
        want = torch.func.vmap(embeddings)(ids)
        assert taken == [None]
        torch.testing.assert_close(made, want)
    with torch.device("meta"):
        meta = BertEmbeddings(16, vocabulary=9, max_len=9)
    with torch.no_grad():
        assert meta(ids.to("meta")).shape == (2, 5, 16)
    assert taken[-1] is None


def test_ids_outside_are_refused():
    embeddings = BertEmbeddings(16, vocabulary=9, max_len=7)
    with torch.no_grad():
        for given in (([[9]],), ([[-1]],), ([[1]], [[2]]), ([[1]], [[0]], [[7]])):
            with pytest.raises(IndexError, match=r"out of range|past the last of [297] vectors"):
                embeddings(*(torch.tensor(ids) for ids in given))


@pytest.mark.compiles
def test_a_compiled_graph_has_no_break():
    embeddings, ids = BertEmbeddings(16, vocabulary=9, max_len=9), torch.randint(9, (2, 5))
    torch.compiler.reset()
    with torch.no_grad():
        made = torch.compile(embeddings, fullgraph=True, backend="aot_eager")(ids)
        torch.testing.assert_close(made, embeddings(ids))
