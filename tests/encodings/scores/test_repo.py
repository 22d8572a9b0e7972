"""RePo: the authors' layer in float64, rotary at a blend of 1, and a cache of what tokens said."""

import pytest
import torch
from torch.nn import functional as F
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from posenc import RePo, Rotary

HEADS, WIDTH, DIM = 4, 6, 16


@pytest.fixture
def repo():
    torch.manual_seed(0)
    return RePo(HEADS, Rotary(WIDTH), DIM, blend=0.25, std=1.0).double()


def content(seq=7):
    torch.manual_seed(1)
    x = torch.randn(2, seq, DIM).double()
    q, k = torch.randn(2, 2, HEADS, seq, WIDTH).double().unbind()
    return x, q, k


def authors(repo, x, q, k):
    """Each head's positions from SwiGLU of the hidden state, blended with the true ones."""
    said = (F.silu(x @ repo.gate.T) * (x @ repo.content.T)) @ repo.final.T
    said = (1 - repo.blend) * said.transpose(-1, -2) + repo.blend * torch.arange(x.shape[1])
    inv_freq = 10_000.0 ** -(torch.arange(0, WIDTH, 2).double() / WIDTH)
    angles = said.unsqueeze(-1) * inv_freq
    cos, sin = (torch.cat((part, part), dim=-1) for part in (angles.cos(), angles.sin()))
    # Theirs has an axis of heads already; transformers' own adds one of 1.
    q, k = apply_rotary_pos_emb(q.unsqueeze(1), k.unsqueeze(1), cos, sin)
    return q.squeeze(1), k.squeeze(1)


@pytest.mark.parametrize("blend", [0.0, 0.25, 1.0])
def test_scores_are_those_of_the_authors_layer(repo, blend):
    repo.blend, (x, q, k) = blend, content()
    theirs_q, theirs_k = authors(repo, x, q, k)
    got = repo(q @ k.mT, q=q, k=k, q_hidden=x, k_hidden=x)
    torch.testing.assert_close(got, theirs_q @ theirs_k.mT / WIDTH**0.5, rtol=1e-9, atol=1e-9)
