"""DeBERTa against the attention of transformers, with its own relative embeddings."""

from math import ceil, copysign, log

import pytest
import torch
from transformers import DebertaV2Config
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

from posenc import DeBERTa, Positional, attention

HEADS, WIDTH, MOST = 4, 8, 24


def both(share: bool, buckets: int, terms: str):
    """A layer of transformers with its relative embeddings, and ours loaded from it."""
    torch.manual_seed(0)
    config = DebertaV2Config(
        hidden_size=HEADS * WIDTH, num_attention_heads=HEADS, relative_attention=True,
        pos_att_type=terms, share_att_key=share, position_buckets=buckets,
        max_relative_positions=MOST, max_position_embeddings=MOST,
        attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0,
    )  # fmt: skip
    theirs = DisentangledSelfAttention(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    span = buckets if buckets > 0 else MOST
    embeddings = torch.randn(2 * span, HEADS * WIDTH)
    ours = DeBERTa(HEADS, WIDTH, max(buckets, 0), MOST, terms=terms.split("|"), far="transformers")
    ours.load(
        embeddings,
        keys=theirs.key_proj if share else getattr(theirs, "pos_key_proj", None),
        queries=theirs.query_proj if share else getattr(theirs, "pos_query_proj", None),
    )
    return theirs, ours, embeddings


# 20 tokens lie within the reach of every configuration, 60 far beyond it on both sides.
@pytest.mark.parametrize("seq", [20, 60])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("buckets", [8, -1])
@pytest.mark.parametrize("terms", ["c2p|p2c", "c2p", "p2c"])
def test_attention_is_that_of_transformers(share, buckets, terms, seq):
    theirs, ours, embeddings = both(share, buckets, terms)
    x = torch.randn(2, seq, HEADS * WIDTH)
    wanted = theirs(x, torch.ones(2, 1, seq, seq), rel_embeddings=embeddings)[0]
    q, k, v = (
        map_(x).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        for map_ in (theirs.query_proj, theirs.key_proj, theirs.value_proj)
    )
    heads = attention(q, k, v, positional=Positional(scores=ours))
    torch.testing.assert_close(heads.transpose(1, 2).flatten(-2), wanted, rtol=0, atol=2e-5)


def row_of_the_authors(distance: int, buckets: int, most: int) -> int:
    """Their table, in plain numbers: distances cut off at ±(most − 1), then logarithms."""
    distance = max(1 - most, min(most - 1, distance))
    mid = buckets // 2
    if abs(distance) > mid:
        steps = ceil(log(abs(distance) / mid) / log((most - 1) / mid) * (mid - 1) - 1e-9)
        distance = copysign(steps + mid, distance)
    return int(max(0, min(2 * buckets - 1, distance + buckets)))


def test_rows_are_the_authors_on_both_sides_of_the_maximum():
    buckets, most = 256, 512
    ours, theirs = DeBERTa(1, 1, buckets, most), DeBERTa(1, 1, buckets, most, far="transformers")
    distances = [*range(-1500, 1501, 7), -513, -512, -511, 511, 512, 513]
    wanted = [[row_of_the_authors(d, buckets, most)] for d in distances]
    assert ours.table(distances, [0]).tolist() == wanted
    # transformers goes on to row 0 for keys after their query, which 512 tokens never reach.
    beyond = [d for d in distances if theirs.table([d], [0]) != ours.table([d], [0])]
    assert set(beyond) == {d for d in distances if d <= -512}
    assert theirs.table([-512, -(10**6)], [0]).unique().tolist() == [0]
    assert ours.table(range(512), range(512)).aminmax() == (1, 511)
