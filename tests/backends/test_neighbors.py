"""Encodings that read the tokens beside each token know documents by positions, or are refused."""

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
from posenc.transformer import Encoder, KeyValueCache

HEADS, WIDTH, DIM, LONG = 4, 8, 32, 6
DOCUMENTS = torch.arange(2).repeat_interleave(LONG)[None]
ANEW = torch.arange(LONG).repeat(2)
ON = torch.arange(2 * LONG)
REFUSED = "reads the tokens beside each token, and positions run on"
SCORES = {
    "selective-rope": lambda: SelectiveRoPE(HEADS, Rotary(WIDTH), DIM),
    "dape-v2": lambda: DAPEv2(HEADS, ALiBi(HEADS)),
}


def attended(encoding, first_document, **given):
    """The second of two documents, whose first holds ``first_document`` more."""
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(1, 2 * LONG, DIM, generator=generator)
    hidden[:, :LONG] += first_document
    heads = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    if encoding.reads_hidden:
        given |= {"q_hidden": hidden, "k_hidden": hidden}
    positional = Positional(scores=encoding)
    return attention(heads, heads, heads, is_causal=True, positional=positional, **given)[
        :, :, LONG:
    ]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("told", ["document_ids", "cu_seqlens"])
@pytest.mark.parametrize("placed", ["nowhere", "running on"])
def test_scores_are_refused_where_positions_run_on(name, told, placed):
    ends = torch.tensor([0, LONG, 2 * LONG])
    given = {told: DOCUMENTS if told == "document_ids" else ends}
    if placed == "running on":
        given |= {"q_positions": ON, "k_positions": ON}
        if told == "document_ids":
            given |= {"q_document_ids": DOCUMENTS}
    with pytest.raises(ValueError, match=REFUSED):
        attended(SCORES[name](), 0.0, **given)


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_a_document_are_its_own_where_positions_begin_anew(name):
    encoding = SCORES[name]()
    given = {"document_ids": DOCUMENTS, "q_positions": ANEW, "k_positions": ANEW}
    one, other = (attended(encoding, more, **given) for more in (0.0, 1.0))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("at", [None, ANEW, 2 * ON], ids=["default", "anew", "apart"])
def test_convolved_documents_stay_apart(at):
    torch.manual_seed(0)
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(Convolutional(DIM, 4, groups=4))).eval()
    x = torch.randn(1, 2 * LONG, DIM)
    other = x.clone()
    other[:, :LONG] += 1
    one, other = (encoder(each, at, document_ids=DOCUMENTS)[:, LONG:] for each in (x, other))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "ids",
    [[0, 1, 1, 2, 2, 2], [0, 1, 2, 3, 3, 4], [-1, 0, -1, 1, 1, 1], [-1, -1, 0, 0, 0, 0],
     [0, 0, 0, 0, -1, -1], [0, 0, -1, 1, 1, -1]],
    ids=str,
)  # fmt: skip
def test_scores_know_documents_of_one_token_and_padding_at_the_ends(name, is_causal, ids):
    torch.manual_seed(0)
    positional = Positional(scores=SCORES[name]())
    encoder = Encoder(DIM, HEADS, 1, positional=positional, is_causal=is_causal).double().eval()
    ids, x = torch.tensor([ids]), torch.randn(1, LONG, DIM).double()
    made = encoder(x, document_ids=ids, padding_mask=ids >= 0)
    for document in ids[ids >= 0].unique():
        own = ids[0] == document
        torch.testing.assert_close(made[:, own], encoder(x[:, own]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [None, 9])
def test_scores_decode_behind_padding(name, size):
    torch.manual_seed(0)
    positional = Positional(scores=SCORES[name]())
    encoder = Encoder(DIM, HEADS, 1, positional=positional, is_causal=True).double().eval()
    x, cache = torch.randn(1, LONG, DIM).double(), KeyValueCache(size=size)
    with torch.no_grad():
        encoder(x[:, :4], padding_mask=torch.tensor([[False, False, True, True]]), cache=cache)
        steps = torch.cat([encoder(x[:, i : i + 1], cache=cache) for i in (4, 5)], dim=1)
        torch.testing.assert_close(steps, encoder(x[:, 2:])[:, 2:], rtol=1e-9, atol=1e-9)


COUNTING = {
    "cope": lambda: CoPE(HEADS, WIDTH, 8, std=1.0),
    "forgetting": lambda: Forgetting(HEADS, WIDTH, std=1.0),
    "cable": lambda: CABLE(HEADS, DIM, std=1.0),
    "path": lambda: PaTH(HEADS, WIDTH, DIM, HEADS, rank=2, std=1.0),
}
FALLING = torch.tensor([0, 1, 9, 3, 4, 5, 6, 7, 8, 9, 10, 11])


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("is_causal", [False, True])
def test_tokens_between_of_the_next_document_are_not_counted(name, is_causal):
    """A query of the first stands where tokens of the second do, as its positions fall within."""
    encoding, ids = COUNTING[name](), torch.tensor([[0] * 9 + [1] * 3])
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(1, 12, DIM, generator=generator)
    given = {"document_ids": ids, "q_document_ids": ids, "is_causal": is_causal}

    def first_document(places, more):
        beside = hidden.clone()
        beside[:, 9:] += more
        x = beside.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        read = {"q_hidden": beside, "k_hidden": beside} if encoding.reads_hidden else {}
        return attention(
            x, x, x, positional=Positional(scores=encoding), q_positions=places,
            k_positions=places, **given, **read,
        )[:, :, :9]  # fmt: skip

    with pytest.raises(ValueError, match="would count tokens of the next document"):
        first_document(FALLING, 0.0)
    for places in (torch.arange(12), FALLING.where(torch.arange(12) < 9, FALLING - 9)):
        one, other = (first_document(places, more) for more in (0.0, 1.0))
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


REAL = torch.tensor([False, False, True, True, True, True])
CAUSAL = torch.ones(LONG, LONG).tril().bool()
LEFT = REAL & CAUSAL
MASKS = {"padding": LEFT, "order": CAUSAL, "the last query": LEFT[-1:]}
GOING_BY_TOKENS = SCORES | COUNTING


def masked(encoding, mask, queries=LONG, **given):
    """Attention of the last tokens, to what is both before them and shown."""
    hidden = torch.randn(1, LONG, DIM, generator=torch.Generator().manual_seed(1))
    x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    if encoding.reads_hidden:
        given |= {"q_hidden": hidden[:, -queries:], "k_hidden": hidden}
    positional = Positional(scores=encoding)
    return attention(x[:, :, -queries:], x, x, mask, is_causal=True, positional=positional, **given)


@pytest.mark.parametrize("name", GOING_BY_TOKENS)
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_mask_alone_is_refused_by_what_goes_by_the_tokens(name, mask):
    encoding, queries = GOING_BY_TOKENS[name](), len(mask)
    real, ids = REAL[None], torch.zeros(1, LONG, dtype=torch.int64)
    padding = {"padding_mask": real, "q_padding_mask": real[:, -queries:]}
    documents = {"document_ids": ids, "q_document_ids": ids[:, -queries:]}
    for given in ({}, padding, documents):
        with pytest.raises(ValueError, match="pass padding_mask and document_ids"):
            masked(encoding, mask, queries, **given)
    assert masked(encoding, mask, queries, **padding, **documents).isfinite().any()
