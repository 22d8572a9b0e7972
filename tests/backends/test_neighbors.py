"""Encodings that go by the tokens beside each token know documents by positions."""

import pytest
import torch

from posenc import (
    CABLE,
    ALiBi,
    Convolutional,
    CoPE,
    DAPEv2,
    Forgetting,
    PaTH,
    Positional,
    Rotary,
    SelectiveRoPE,
    attention,
)
from posenc.transformer import Encoder

HEADS, WIDTH, DIM, LONG = 4, 8, 32, 6
DOCUMENTS = torch.arange(2).repeat_interleave(LONG)[None]
ANEW = torch.arange(LONG).repeat(2)
ON = torch.arange(2 * LONG)
READING = {
    "selective-rope": lambda: SelectiveRoPE(HEADS, Rotary(WIDTH), DIM),
    "dape-v2": lambda: DAPEv2(HEADS, ALiBi(HEADS)),
}
COUNTING = {
    "cope": lambda: CoPE(HEADS, WIDTH, 8, std=1.0),
    "forgetting": lambda: Forgetting(HEADS, WIDTH, std=1.0),
    "cable": lambda: CABLE(HEADS, DIM, std=1.0),
    "path": lambda: PaTH(HEADS, WIDTH, DIM, HEADS, rank=2, std=1.0),
}


def attended(encoding, length, *mask, other=slice(0), **given):
    """Self-attention of some hidden states, to which 1 is added in the other document."""
    hidden = torch.randn(1, length, DIM, generator=torch.Generator().manual_seed(1))
    hidden[:, other] += 1
    heads = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    if encoding.reads_hidden:
        given |= {"q_hidden": hidden, "k_hidden": hidden}
    positional = Positional(scores=encoding)
    return attention(heads, heads, heads, *mask, is_causal=True, positional=positional, **given)


@pytest.mark.parametrize("build", READING.values(), ids=READING)
def test_a_document_is_its_own_where_positions_begin_anew(build):
    encoding, given = build(), {"q_positions": ANEW, "k_positions": ANEW}
    one, other = (
        attended(encoding, 2 * LONG, other=slice(more), document_ids=DOCUMENTS, **given)
        for more in (0, LONG)
    )
    assert torch.equal(one[:, :, LONG:], other[:, :, LONG:])
    for place in ({}, {"q_positions": ON, "k_positions": ON, "q_document_ids": DOCUMENTS}):
        with pytest.raises(ValueError, match="positions run on"):
            attended(encoding, 2 * LONG, document_ids=DOCUMENTS, **place)


@pytest.mark.parametrize("at", [None, ANEW, 2 * ON], ids=["default", "anew", "apart"])
def test_convolved_documents_stay_apart(at):
    torch.manual_seed(0)
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(Convolutional(DIM, 4, groups=4))).eval()
    x = torch.randn(1, 2 * LONG, DIM)
    other = x.clone()
    other[:, :LONG] += 1
    one, other = (encoder(each, at, document_ids=DOCUMENTS)[:, LONG:] for each in (x, other))
    assert torch.equal(one, other)


@pytest.mark.parametrize("build", READING.values(), ids=READING)
@pytest.mark.parametrize(
    "ids", [[0, 1, 1, 2, 2, 2], [-1, 0, -1, 1, 1, 1], [0, 0, 0, 0, -1, -1]], ids=str
)
def test_scores_know_documents_of_one_token_and_padding_at_the_ends(build, ids):
    torch.manual_seed(0)
    positional = Positional(scores=build())
    encoder = Encoder(DIM, HEADS, 1, positional=positional, is_causal=True).double().eval()
    ids, x = torch.tensor([ids]), torch.randn(1, LONG, DIM).double()
    made = encoder(x, document_ids=ids, padding_mask=ids >= 0)
    for document in ids[ids >= 0].unique():
        own = ids[0] == document
        torch.testing.assert_close(made[:, own], encoder(x[:, own]), rtol=1e-9, atol=1e-9)


FALLING = torch.tensor([0, 1, 9, 3, 4, 5, 6, 7, 8, 9, 10, 11])


@pytest.mark.parametrize("build", COUNTING.values(), ids=COUNTING)
def test_tokens_between_of_the_next_document_are_not_counted(build):
    """A query of the first stands where tokens of the second do, as its positions fall within."""
    encoding, ids = build(), torch.tensor([[0] * 9 + [1] * 3])

    def first_document(places, other=slice(0)):
        given = {"document_ids": ids, "q_positions": places, "k_positions": places}
        return attended(encoding, 12, other=other, q_document_ids=ids, **given)[:, :, :9]

    with pytest.raises(ValueError, match="tokens of the next document"):
        first_document(FALLING)
    places = FALLING.where(torch.arange(12) < 9, FALLING - 9)
    torch.testing.assert_close(
        first_document(places), first_document(places, slice(9, 12)), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("build", (READING | COUNTING).values(), ids=READING | COUNTING)
def test_a_mask_alone_is_refused_by_what_goes_by_the_tokens(build):
    encoding, real = build(), torch.arange(LONG)[None] >= 2
    mask = real & torch.ones(LONG, LONG).tril().bool()
    with pytest.raises(ValueError, match="pass padding_mask and document_ids"):
        attended(encoding, LONG, mask, padding_mask=real)
    told = {"padding_mask": real, "document_ids": torch.zeros(1, LONG, dtype=torch.int64)}
    assert attended(encoding, LONG, mask, **told).isfinite().any()
