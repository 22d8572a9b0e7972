"""Encodings that read the tokens beside each token know documents by positions, or are refused."""

import pytest
import torch

from posenc import (
    CABLE,
    PEG,
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
    positions,
)
from posenc.transformer import Encoder, KeyValueCache

HEADS, WIDTH, DIM, LONG = 4, 8, 32, 6
DOCUMENTS = torch.arange(2).repeat_interleave(LONG)[None]
ANEW = torch.arange(LONG).repeat(2)
ON = torch.arange(2 * LONG)
REFUSED = r"reads the tokens beside each token .* these run on where one begins"
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


@pytest.mark.parametrize(
    ("encoding", "at"),
    [
        (lambda: Convolutional(DIM, 4, groups=4), ON),
        (lambda: PEG(DIM), positions.grid(4, 3)[None]),
    ],
)
def test_an_encoder_refuses_tokens_that_stand_beside_those_of_another_document(encoding, at):
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(encoding()))
    with pytest.raises(ValueError, match=REFUSED):
        encoder(torch.randn(1, 2 * LONG, DIM), at, document_ids=DOCUMENTS)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("way", ["forward", "stages"])
def test_an_encoder_refuses_scores_across_documents(name, way):
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(scores=SCORES[name]()))
    with pytest.raises(ValueError, match=REFUSED):
        getattr(encoder, way)(torch.randn(1, 2 * LONG, DIM), ON, document_ids=DOCUMENTS)


@pytest.mark.parametrize("at", [None, ANEW, 2 * ON], ids=["default", "anew", "apart"])
def test_convolved_documents_stay_apart(at):
    torch.manual_seed(0)
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(Convolutional(DIM, 4, groups=4))).eval()
    x = torch.randn(1, 2 * LONG, DIM)
    other = x.clone()
    other[:, :LONG] += 1
    one, other = (encoder(each, at, document_ids=DOCUMENTS)[:, LONG:] for each in (x, other))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_documents_of_one_token_are_convolved_apart():
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(Convolutional(DIM, 4, groups=4))).eval()
    x = torch.randn(1, 3, DIM)
    ids = torch.tensor([[0, 1, 2]])
    alone = torch.cat([encoder(x[:, i : i + 1]) for i in range(3)], dim=1)
    torch.testing.assert_close(encoder(x, document_ids=ids), alone)


@pytest.mark.parametrize(
    ("ids", "at"),
    [
        ([0, 0, 0, -1, 1, 1, 1, -1], [0, 1, 2, 0, 4, 5, 6, 0]),
        ([0, 0, 1, 2, 2, 2, 2, 2], [0, 1, 0, 3, 4, 5, 6, 7]),
    ],
    ids=["padding between", "a document between"],
)
def test_documents_that_do_not_touch_are_convolved_apart(ids, at):
    """Their positions go on from one another's by as many as there are tokens between."""
    ids, at, x = torch.tensor([ids]), torch.tensor([at]), torch.randn(1, 8, DIM)
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(Convolutional(DIM, 9, groups=4))).eval()
    made = encoder(x, at, document_ids=ids, padding_mask=ids >= 0)
    for document in ids[ids >= 0].unique():
        own = ids[0] == document
        torch.testing.assert_close(made[:, own], encoder(x[:, own], at[:, own]))


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


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [None, 9])
def test_padding_of_an_earlier_pass_is_nobodys_neighbor(name, size):
    """Its row begins with the next pass, at a position that the padding did not know of."""
    torch.manual_seed(0)
    positional = Positional(scores=SCORES[name]())
    encoder = Encoder(DIM, HEADS, 2, positional=positional, is_causal=True).double().eval()
    x, real = torch.randn(2, LONG, DIM).double(), torch.ones(2, LONG, dtype=torch.bool)
    real[1, :2] = False
    at = torch.arange(LONG) + torch.tensor([[0], [10]])
    for places in (None, at):
        cache, parts = KeyValueCache(size=size), [slice(0, 2), slice(2, LONG)]
        given = [None if places is None else places[:, part] for part in parts]
        with torch.no_grad():
            encoder(x[:, :2], given[0], padding_mask=real[:, :2], cache=cache)
            if places is not None:
                with pytest.raises(ValueError, match=r"as if it were the next\. Leave positions"):
                    encoder(x[:, 2:], given[1], padding_mask=real[:, 2:], cache=cache)
                continue
            made = encoder(x[:, 2:], padding_mask=real[:, 2:], cache=cache)[1:]
            torch.testing.assert_close(made, encoder(x[1:, 2:]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("real", [[1, 1, 0, 1, 1, 1], [1, 0, 1, 1, 1, 1]], ids=str)
def test_padding_between_tokens_is_refused_by_scores(name, real):
    encoder = Encoder(DIM, HEADS, 1, positional=Positional(scores=SCORES[name]()))
    real = torch.tensor([real]).bool()
    with pytest.raises(ValueError, match="padding lies between tokens of one document"):
        encoder(torch.randn(1, LONG, DIM), padding_mask=real)


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

    with pytest.raises(ValueError, match="a query at 9 would count tokens of the next document"):
        first_document(FALLING, 0.0)
    for places in (torch.arange(12), FALLING.where(torch.arange(12) < 9, FALLING - 9)):
        one, other = (first_document(places, more) for more in (0.0, 1.0))
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("lowest", [None, float("-inf"), torch.finfo(torch.float32).min])
def test_padding_that_a_mask_alone_tells_is_refused_where_it_would_be_read(name, lowest):
    def mask(real):
        shown = torch.tensor(real).expand(1, 1, LONG, LONG)
        return shown if lowest is None else torch.where(shown, 0.0, lowest)

    encoding, x = SCORES[name](), torch.randn(1, LONG, DIM)
    heads = x.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    given = {"is_causal": True, "positional": Positional(scores=encoding)}
    if encoding.reads_hidden:
        given |= {"q_hidden": x, "k_hidden": x}
    left = mask([False, False, True, True, True, True])
    with pytest.raises(
        ValueError,
        match=r"attn_mask hides a key from every query that sees those beside it, .* padding_mask",
    ):
        attention(heads, heads, heads, left, **given)
    known = torch.tensor([[False, False, True, True, True, True]])
    told = attention(heads, heads, heads, left, padding_mask=known, **given)
    alone = attention(heads, heads, heads, padding_mask=known, **given)
    torch.testing.assert_close(told[:, :, 2:], alone[:, :, 2:])
    right = mask([True, True, True, True, False, False])  # which no token before it reads
    plain = attention(heads, heads, heads, **given)
    made = attention(heads, heads, heads, right, **given)
    torch.testing.assert_close(made[:, :, :4], plain[:, :, :4])


REAL = torch.tensor([False, False, True, True, True, True])
CAUSAL = torch.ones(LONG, LONG).tril().bool()
LEFT = REAL & CAUSAL
APART = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)).bool()
MASKS_THAT_TELL = {
    "rows of padding see themselves": LEFT | torch.eye(LONG).bool(),
    "padding sees padding": LEFT | (CAUSAL & ~REAL & ~REAL[:, None]),
    "rows that see nothing see all": LEFT | ~LEFT.any(-1, keepdim=True),
    "numbers of a thousand and more": torch.where(LEFT, 0.0, -9999.0),
    "two documents": APART,
    "padding that sees all behind": LEFT | (torch.arange(LONG)[:, None] == LONG - 1),
    "a document of one token": torch.block_diag(torch.ones(5, 5), torch.ones(1, 1)).bool(),
    "the last queries": LEFT[-3:],
    "the last query": LEFT[-1:],
    "documents of the last queries": APART[-2:],
    "every second": CAUSAL & ((torch.arange(LONG)[:, None] - torch.arange(LONG)) % 2 == 0),
}
MASKS_OF_ORDER = {
    "causal": CAUSAL,
    "all": torch.ones(LONG, LONG).bool(),
    "a window": CAUSAL & ~CAUSAL.tril(-2),
    "padding behind": REAL.flip(0).expand(LONG, LONG),
    "the last query of all": CAUSAL[-1:],
}


def masked(mask, **given):
    """Attention of as many of the last tokens as the mask has rows, under DAPE v2."""
    torch.manual_seed(0)
    encoding = SCORES["dape-v2"]()
    x = torch.randn(1, HEADS, LONG, WIDTH, generator=torch.Generator().manual_seed(1))
    given |= {"is_causal": True, "positional": Positional(scores=encoding)}
    return attention(x[:, :, -len(mask) :], x, x, mask, **given)


@pytest.mark.parametrize("mask", MASKS_THAT_TELL.values(), ids=MASKS_THAT_TELL)
def test_what_a_mask_alone_may_tell_is_refused(mask):
    with pytest.raises(ValueError, match="that sees those beside it, and DAPEv2"):
        masked(mask)
    ones = torch.ones(1, LONG, dtype=torch.int64)
    of_queries = {
        "q_padding_mask": ones[:, -len(mask) :].bool(),
        "q_document_ids": ones[:, -len(mask) :],
    }
    told = {"padding_mask": ones.bool(), "document_ids": ones}
    assert masked(mask, **told, **of_queries).isfinite().any()


@pytest.mark.parametrize("mask", MASKS_OF_ORDER.values(), ids=MASKS_OF_ORDER)
def test_a_mask_of_order_is_none_of_documents(mask):
    assert masked(mask).isfinite().all()


BETWEEN = torch.tensor([True, True, False, True, True, True])
PADDING_BETWEEN = {
    "hidden from all": BETWEEN.expand(LONG, LONG),
    "hidden but from itself": CAUSAL & BETWEEN | torch.eye(LONG).bool(),
    "hidden before the last query": BETWEEN.expand(1, LONG),
    "by a number": torch.where(BETWEEN, 0.0, -9999.0).expand(LONG, LONG),
    "but from the last": CAUSAL & BETWEEN | (torch.arange(LONG)[:, None] == LONG - 1),
    "twice": CAUSAL & torch.tensor([1, 0, 1, 0, 1, 1]).bool() | torch.eye(LONG).bool(),
    "every second": CAUSAL & ((torch.arange(LONG)[:, None] - torch.arange(LONG)) % 2 == 0),
    "documents by turns": torch.tensor([1, 0, 1, 0, 1, 1]) == torch.tensor([[1, 0, 1, 0, 1, 1]]).mT,
    "a window behind a sink": torch.tensor([[True, False, False, True, True, True]]),
}
NONE_BETWEEN = MASKS_OF_ORDER | {
    "padding before": LEFT,
    "padding that sees itself": LEFT | torch.eye(LONG).bool(),
    "documents": APART,
    "the last query in a window": ~CAUSAL[2:3],
    "a sink and a window": CAUSAL & (~CAUSAL.tril(-2) | (torch.arange(LONG) == 0)),
}


def summed(encoding, mask, places=None, **given):
    """Attention of the last tokens under an encoding that sums over the tokens between."""
    hidden = torch.randn(1, LONG, DIM, generator=torch.Generator().manual_seed(1))
    x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    if encoding.reads_hidden:
        given |= {"q_hidden": hidden[:, -len(mask) :], "k_hidden": hidden}
    if places is not None:
        given |= {"q_positions": places[-len(mask) :], "k_positions": places}
    positional = Positional(scores=encoding)
    q = x[:, :, -len(mask) :]
    return attention(q, x, x, mask, is_causal=True, positional=positional, **given)


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("mask", PADDING_BETWEEN.values(), ids=PADDING_BETWEEN)
def test_padding_between_that_a_mask_alone_tells_is_refused(name, mask):
    encoding = COUNTING[name]()
    with pytest.raises(ValueError, match=r"that sees those beside it, and .* between"):
        summed(encoding, mask)
    known = {"padding_mask": BETWEEN[None], "q_padding_mask": BETWEEN[None, -len(mask) :]}
    assert summed(encoding, mask, **known).isfinite().any()
    if mask is PADDING_BETWEEN["hidden from all"]:
        placed = BETWEEN.cumsum(0) - 1  # padding has the position of the token before it
        real = summed(encoding, mask, placed)[:, :, BETWEEN]
        told = summed(encoding, mask, **known)[:, :, BETWEEN]
        torch.testing.assert_close(real, told, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("mask", NONE_BETWEEN.values(), ids=NONE_BETWEEN)
def test_a_mask_that_hides_none_between_is_taken(name, mask):
    assert summed(COUNTING[name](), mask).isfinite().any()


def test_documents_whose_positions_fall_count_nothing_of_each_other():
    """The last token of the second is hidden from all of the first, one of which stands behind."""
    places = torch.tensor([0, 1, 2, 3, 0, 1])
    mask = torch.block_diag(torch.ones(4, 4), torch.ones(2, 2)).bool()
    whole = summed(CoPE(HEADS, WIDTH, 8, std=1.0), mask, places)
    assert whole.isfinite().all()


@pytest.mark.parametrize("name", [*SCORES, *COUNTING])
@pytest.mark.parametrize("filled", [0, 1, 2])
@pytest.mark.parametrize("queries", [1, 8])
def test_padding_between_at_positions_of_its_own_is_refused(name, filled, queries):
    """Transformers gives padding position 1 or 0, wherever it stands."""
    real = torch.tensor([True, True, True, False, False, True, True, True])
    at = (real.cumsum(0) - 1).masked_fill(~real, filled)
    hidden = torch.randn(1, 8, DIM, generator=torch.Generator().manual_seed(1))
    x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    encoding = (SCORES | COUNTING)[name]()
    given = {"q_hidden": hidden[:, -queries:], "k_hidden": hidden} if encoding.reads_hidden else {}
    given |= {"q_positions": at[-queries:], "k_positions": at, "is_causal": True}
    mask = (real & torch.ones(8, 8).tril().bool())[-queries:]
    call = (x[:, :, -queries:], x, x, mask)
    if name in COUNTING and filled == 2:  # the position of the token before it, as it should be
        assert attention(*call, positional=Positional(scores=encoding), **given).isfinite().any()
        return
    with pytest.raises(
        ValueError, match=r"hides a key from every query that sees those beside it|Positions repeat"
    ):
        attention(*call, positional=Positional(scores=encoding), **given)


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("placed", [False, True])
def test_what_a_mask_hides_at_the_end_of_a_document_is_counted_by_none(name, placed):
    ids = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    real = torch.tensor([True, True, False, False, True, True, True, True])
    hidden = torch.randn(1, 8, DIM, generator=torch.Generator().manual_seed(1))
    encoding = COUNTING[name]()

    def attended(hidden, mask=None, **given):
        x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        if encoding.reads_hidden:
            given |= {"q_hidden": hidden, "k_hidden": hidden}
        return attention(
            x, x, x, mask, is_causal=True, positional=Positional(scores=encoding), **given
        )

    given = {"document_ids": ids}
    if placed:
        at = torch.arange(4).repeat(2)
        given |= {"q_positions": at, "k_positions": at, "q_document_ids": ids}
    made = attended(hidden, real.expand(1, 1, 1, 8), **given)
    torch.testing.assert_close(made[:, :, :2], attended(hidden[:, :2]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(made[:, :, 4:], attended(hidden[:, 4:]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", COUNTING)
def test_a_hidden_key_whose_positions_fall_between_seen_ones_is_refused(name):
    """A query of the second of two documents that alternate: the fall would end its document."""
    ids, at = torch.tensor([0, 0, 1, 0, 1]), torch.tensor([0, 1, 0, 2, 1])
    hidden = torch.randn(1, 5, DIM, generator=torch.Generator().manual_seed(1))
    x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    encoding = COUNTING[name]()
    given = {"q_hidden": hidden[:, -1:], "k_hidden": hidden} if encoding.reads_hidden else {}
    given |= {"q_positions": at[-1:], "k_positions": at, "is_causal": True}
    with pytest.raises(ValueError, match="hides a key from every query"):
        attention(
            x[:, :, -1:],
            x,
            x,
            (ids == ids[-1])[None],
            positional=Positional(scores=encoding),
            **given,
        )


@pytest.mark.parametrize("name", SCORES)
def test_padding_is_not_vouched_for_by_padding_of_another_document(name):
    """It sees all keys there, from where the token behind it stands, too."""
    real, ids = torch.tensor([False] * 3 + [True] * 3), torch.tensor([0, 0, 1, 1, 1, 1])
    at = torch.tensor([0, 1, 0, 1, 2, 3])
    hidden = torch.randn(1, 6, DIM, generator=torch.Generator().manual_seed(1))
    x = hidden.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
    encoding = SCORES[name]()
    given = {"q_hidden": hidden, "k_hidden": hidden} if encoding.reads_hidden else {}
    given |= {"q_positions": at, "k_positions": at}
    mask = (ids[:, None] == ids) & real & torch.ones(6, 6).tril().bool()
    mask |= ~mask.any(-1, keepdim=True)
    with pytest.raises(ValueError, match="hides a key from every query"):
        attention(x, x, x, mask, positional=Positional(scores=encoding), **given)
