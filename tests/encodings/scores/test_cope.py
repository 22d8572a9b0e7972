"""CoPE against a loop written from its definition, and in known limits."""

import math

import pytest
import torch
from tests.encodings.content import wide as random

from posenc import CoPE

WIDTH = 8


def by_the_authors(q, k, gate_keys, vectors, *, divided: bool):
    """``ContextPosSelfAttn`` of their code, with gates by other products than the scores."""
    width, length = q.shape[-1], q.shape[-2]
    seen = torch.ones(length, length, dtype=q.dtype).tril()
    gates = torch.sigmoid(q @ gate_keys.mT / math.sqrt(width)) * seen
    places = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=len(vectors) - 1)
    fixed = q @ vectors.T
    low, high = places.floor().long(), places.ceil().long()
    part = places - low
    made = fixed.gather(-1, high) * part + fixed.gather(-1, low) * (1 - part)
    logits = q @ k.mT
    if divided:
        return (logits + made) / math.sqrt(width)
    return logits / math.sqrt(width) + made


def test_gates_by_keys_of_their_own_are_the_authors_code():
    """Where keys are the hidden state itself, their ``proj_key_cope`` is a map of keys."""
    cope = CoPE(3, WIDTH, 4, std=1.0, separate_keys=True).double()
    q, k = (random(1, 3, 7, WIDTH, seed=seed) for seed in range(2))
    scores = q @ k.mT / math.sqrt(WIDTH)
    same = CoPE(3, WIDTH, 4).double()
    same.load_state_dict({"weight": cope.weight})
    torch.testing.assert_close(cope(scores, q=q, k=k), same(scores, q=q))  # at first the identity
    torch.nn.init.normal_(cope.key_maps)
    want = by_the_authors(q, k, k @ cope.key_maps.mT, cope.weight, divided=False)
    torch.testing.assert_close(cope(scores, q=q, k=k).tril(), want.tril())


@pytest.mark.parametrize("divided", [True, False])
def test_gates_by_values_are_the_authors_code(divided):
    cope = CoPE(3, WIDTH, 4, std=1.0, scaled=divided).double()
    q, k, v = (random(1, 3, 7, WIDTH, seed=seed) for seed in range(3))
    gates = q @ v.mT / math.sqrt(WIDTH)
    table = cope.table(range(7), range(7))
    got = cope.encode(q @ k.mT / math.sqrt(WIDTH), table, q=q, gates=gates)
    want = by_the_authors(q, k, v, cope.weight, divided=divided)
    torch.testing.assert_close(got.tril(), want.tril())
