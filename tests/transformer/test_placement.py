"""Whatever the layout, the same tokens come out the same: prefill, decoding, padding, packing."""

import pytest
import torch
from torch.testing import assert_close

from posenc import Positional, Sinusoidal, TokenEncoding, positions
from posenc.transformer import Encoder, KeyValueCache

CLOSE = {"atol": 1e-12, "rtol": 0}
LENGTHS = [3, 7, 1]


def encoder_with(positional, *, is_causal=True, **arguments):
    encoder = Encoder(16, 4, 2, positional=positional, is_causal=is_causal, kv_heads=2, **arguments)
    return encoder.double().eval()


def sentence(*shape):
    return torch.randn(*shape, 16, dtype=torch.float64)


def padded_on(side, sentences):
    """A batch of sentences, its mask, and padding full of NaN that must not matter."""
    longest = max(map(len, sentences))
    batch = torch.full((len(sentences), longest, 16), torch.nan, dtype=torch.float64)
    mask = torch.zeros(len(sentences), longest, dtype=torch.bool)
    for row, tokens in enumerate(sentences):
        place = slice(len(tokens)) if side == "right" else slice(longest - len(tokens), None)
        batch[row, place], mask[row, place] = tokens, True
    return batch, mask


@pytest.mark.parametrize("causal", [False, True])
def test_padded_and_packed_sentences_are_sentences_alone(positional, causal):
    encoder = encoder_with(positional, is_causal=causal)
    sentences = [sentence(length) for length in LENGTHS]
    alone = [encoder(tokens[None])[0] for tokens in sentences]
    for side in ("left", "right"):
        batch, mask = padded_on(side, sentences)
        out = encoder(batch, padding_mask=mask)
        assert out.isfinite().all()
        assert_close(out[mask], torch.cat(alone), **CLOSE)
    row, ids = torch.cat(sentences)[None], torch.tensor([[7] * 3 + [2] * 7 + [9]])
    packed = encoder(row, document_ids=ids)
    assert torch.equal(packed, encoder(row, positions.packed(LENGTHS), document_ids=ids))
    assert_close(packed[0], torch.cat(alone), **CLOSE)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_prompts_decode_as_sentences_alone(positional, side):
    encoder, sentences = encoder_with(positional), [sentence(7), sentence(9)]
    batch, mask = padded_on(side, [sentences[0][:3], sentences[1][:5]])
    cache = KeyValueCache()
    encoder(batch, padding_mask=mask, cache=cache)
    steps = [torch.stack([sentences[0][3 + i], sentences[1][5 + i]])[:, None] for i in range(4)]
    out = torch.cat([encoder(new, cache=cache) for new in steps], dim=1)
    for row, tokens in enumerate(sentences):
        assert_close(out[row], encoder(tokens[None])[0, -4:], **CLOSE)


def test_a_row_that_has_ended_can_be_padded_while_others_decode(positional):
    encoder, x = encoder_with(positional), sentence(2, 6)
    cache = KeyValueCache()
    encoder(x[:, :3], cache=cache)
    on = torch.tensor([[True], [False]])
    outs = [encoder(x[:, i : i + 1], padding_mask=on, cache=cache) for i in range(3, 6)]
    assert_close(torch.cat(outs, 1)[0], encoder(x[:1])[0, 3:], **CLOSE)
    assert cache.next_position.tolist() == [6, 3]


def test_explicit_positions_are_those_of_the_default(positional):
    encoder, x = encoder_with(positional), sentence(2, 6)
    want = encoder(x)
    for rows in (torch.arange(6), torch.arange(6).expand(2, 6)):
        assert_close(encoder(x, rows), want, **CLOSE)
        cache = KeyValueCache()
        encoder(x[:, :4], rows[..., :4], cache=cache)
        assert_close(encoder(x[:, 4:5], rows[..., 4:5], cache=cache), want[:, 4:5], **CLOSE)
        assert_close(encoder(x[:, 5:], cache=cache), want[:, 5:], **CLOSE)


def test_only_token_encodings_see_where_a_whole_sentence_stands(placed):
    encoder, x = encoder_with(placed), sentence(1, 6)
    far = (encoder(x, torch.arange(20, 26)) - encoder(x)).abs().max()
    assert far > 1e-3 if list(placed.tokens) else far < 1e-10


class Rows(TokenEncoding):
    """Tokens on a grid: the sinusoidal encoding of y in the first half, of x in the second."""

    def __init__(self):
        super().__init__()
        self.axis, self.dim = Sinusoidal(8), 16

    def table(self, positions, *, dtype=None):
        return self.axis.table(positions, dtype=dtype).flatten(-2)

    def encode(self, x, table):
        return (x + table).to(x.dtype)


def test_a_grid_takes_positions_with_an_axis_of_coordinates():
    encoder, x = encoder_with(Positional(Rows())), sentence(2, 12)
    grid = positions.grid(3, 4)[None]
    want = encoder(x, grid)
    plain = encoder_with(Positional())
    plain.load_state_dict(encoder.state_dict())
    assert_close(want, plain(x + Rows().table(grid, dtype=torch.float64)), **CLOSE)
    cache = KeyValueCache()
    steps = [encoder(x[:, i : i + 1], grid[:, i : i + 1], cache=cache) for i in range(12)]
    assert_close(torch.cat(steps, 1), want, **CLOSE)


def test_rows_of_a_ragged_batch(worked):
    example = worked["ragged_batch"]
    sentences = [text.lower().split() for text in example["sentences"]]
    known = {word: torch.tensor(v).double() for word, v in example["some_embeddings"].items()}
    batch = torch.zeros(3, example["max_len"], example["d"], dtype=torch.float64)
    mask = torch.zeros(3, example["max_len"], dtype=torch.bool)
    for row, words in enumerate(sentences):
        mask[row, : len(words)] = True
        for place, word in enumerate(words):
            batch[row, place] = known.get(word, torch.randn(4).double())
    assert mask.sum(1).tolist() == [3, 4, 2]
    encoder = Encoder(4, 2, 1, positional=Positional(Sinusoidal(4))).double().eval()
    out = encoder(batch, padding_mask=mask)
    assert list(out.shape) == example["batch_shape"]
    assert_close(out[2, :2], encoder(batch[2:, :2])[0], **CLOSE)
    weights = encoder.stages(batch, padding_mask=mask).blocks[0].attention.weights
    assert weights[2, :, :, 2:].eq(0).all()
    assert_close(weights.sum(-1), torch.ones(3, 2, 4).double(), **CLOSE)


def test_a_row_of_nothing_but_padding_is_finite_and_has_finite_gradients(positional):
    encoder, x = encoder_with(positional, is_causal=False), sentence(2, 4).requires_grad_()
    out = encoder(x, padding_mask=torch.tensor([[False] * 4, [True] * 4]))
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    assert_close(out[1], encoder(x[1:])[0], **CLOSE)


@pytest.mark.parametrize(
    ("ids", "found"), [([0] * 5, [0, 0, 0, 1, 2]), ([0, 0, 0, 1, 1], [0, 0, 0, 0, 1])]
)
def test_padding_counts_for_nothing_within_documents(ids, found):
    encoder = Encoder(16, 4, 1, positional=Positional(Sinusoidal(16)))
    given = {"padding_mask": torch.arange(5)[None] >= 2, "document_ids": torch.tensor([ids])}
    assert encoder.stages(torch.randn(1, 5, 16), **given).positions.tolist() == [found]
