"""PaTH against products of its reflections, one after the other, and in known limits."""

import pytest
import torch

import posenc
from posenc import CABLE, PaTH, Positional, Rotary
from posenc.positions import consecutive, decoding, left_padded, packed
from posenc.testing.reference import reference_attention
from posenc.transformer import Encoder, KeyValueCache

HEADS, KV_HEADS, WIDTH, DIM = 4, 2, 6, 5


def example(seq: int = 8):
    """The encoding, queries and keys, and the hidden state."""
    torch.manual_seed(0)
    path = PaTH(HEADS, WIDTH, DIM, KV_HEADS, rank=3, std=1.0).double()
    q, k = torch.randn(2, HEADS, seq, WIDTH).double(), torch.randn(2, KV_HEADS, seq, WIDTH).double()
    return path, q, k, torch.randn(2, seq, DIM).double()


def scores_of(q: torch.Tensor, k: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
    return q @ k.repeat_interleave(HEADS // KV_HEADS, dim=1).mT * scale


def encoded(path, q, k, x, *positions) -> torch.Tensor:
    return path(scores_of(q, k), *positions, q=q, k=k, scale=0.5, q_hidden=x, k_hidden=x).detach()


def by_reflections(path: PaTH, q, k, x) -> torch.Tensor:
    """Equation by equation: the key goes through H of every token after it, up to the query's."""
    made = scores_of(q, k)
    inner = x @ path.down.T @ path.weight.T
    beta = 2 / (1 + torch.exp(-(x @ path.beta_weight.T + path.beta_bias)))
    for row in range(len(x)):
        for head in range(HEADS):
            of = head // (HEADS // KV_HEADS)
            u = inner[row, :, of * WIDTH : (of + 1) * WIDTH]
            w = u / torch.sqrt((u**2).sum(-1, keepdim=True) + 1e-6)
            for i in range(x.shape[1]):
                for j in range(i + 1):
                    key = k[row, of, j]
                    for at in range(j + 1, i + 1):
                        reflection = torch.eye(WIDTH) - beta[row, at, of] * torch.outer(
                            w[at], w[at]
                        )
                        key = reflection @ key
                    made[row, head, i, j] = 0.5 * q[row, head, i] @ key
    return made.detach()


def test_it_is_the_product_of_its_reflections():
    path, q, k, x = example()
    torch.testing.assert_close(encoded(path, q, k, x), by_reflections(path, q, k, x))


def test_without_a_step_nothing_changes():
    path, q, k, x = example()
    torch.nn.init.zeros_(path.beta_weight)
    torch.nn.init.constant_(path.beta_bias, -800.0)  # β = 0
    torch.testing.assert_close(encoded(path, q, k, x), scores_of(q, k))


def test_a_direction_that_is_forgotten_is_gone():
    # β = 1 and one direction for all: what keys had along it reaches no later query.
    path, q, k, x = example()
    for weight in (path.beta_weight, path.beta_bias):
        torch.nn.init.zeros_(weight)
    x = x[:, :1].expand(x.shape)
    w = path.key_features(x)[0, 0, :WIDTH].detach()
    along = torch.outer(w, w) / (w @ w)
    gone = k - k @ along
    want = torch.where(torch.ones(8, 8).tril(-1).bool(), scores_of(q, gone), scores_of(q, k))
    got = encoded(path, q, k, x)
    torch.testing.assert_close(got[0, :2], want[0, :2], atol=1e-5, rtol=1e-5)


def test_a_later_key_is_left_as_it_is():
    path, q, k, x = example()
    torch.testing.assert_close(encoded(path, q, k, x).triu(), scores_of(q, k).triu())


def test_packed_and_padded_rows_walk_each_document_alone():
    path, q, k, x = example()
    alone = encoded(path, q[..., 3:, :], k[..., 3:, :], x[:, 3:]).tril()
    mask = torch.tensor([False] * 3 + [True] * 5)
    for positions in (packed([3, 5]), left_padded(mask)):
        together = encoded(path, q, k, x, positions, positions)
        torch.testing.assert_close(together[..., 3:, 3:].tril(), alone)


def test_padding_in_the_middle_takes_no_step():
    """A shorter prompt, padded, and what follows it, as a cache of two rows holds them."""
    path, q, k, x = example()
    real = torch.tensor([True, True, False, False, True, True, True, True]).expand(2, -1)
    v = torch.randn(2, KV_HEADS, 8, 3).double()
    positional, places = Positional(scores=path), (real.int().cumsum(-1) - 1).long()
    got = posenc.attention(
        q, k, v, is_causal=True, positional=positional, q_positions=places, k_positions=places,
        padding_mask=real, q_hidden=x, k_hidden=x,
    )  # fmt: skip
    q, k, v, x = (each[..., real[0], :] for each in (q, k, v, x))
    alone = posenc.attention(q, k, v, is_causal=True, positional=positional, q_hidden=x, k_hidden=x)
    torch.testing.assert_close(got[..., real[0], :], alone)


def test_a_decoded_row_is_the_last_row():
    path, q, k, x = example()
    row = path(
        scores_of(q, k)[..., -1:, :], decoding(7), consecutive(8), q=q[..., -1:, :], k=k, scale=0.5,
        q_hidden=x[:, -1:], k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(row.detach(), encoded(path, q, k, x)[..., -1:, :])


@pytest.mark.parametrize("size", [None, 12])
def test_decoding_behind_a_cache_is_the_whole_pass(size):
    path, *_, x = example()
    positional = [
        Positional(queries_keys=Rotary(WIDTH), scores=(path, CABLE(HEADS, DIM))) for _ in range(2)
    ]
    encoder = Encoder(
        DIM, HEADS, 2, positional=positional, head_dim=WIDTH, kv_heads=KV_HEADS, is_causal=True
    ).double()
    cache = KeyValueCache(size)
    with torch.no_grad():
        steps = [encoder.eval()(x[:, :3], cache=cache)]
        steps += [encoder(x[:, i : i + 1], cache=cache) for i in range(3, 8)]
        torch.testing.assert_close(torch.cat(steps, dim=1), encoder(x))


def test_attention_is_its_definition():
    path, q, k, x = example()
    positional, here = Positional(scores=(path, CABLE(HEADS, DIM).double())), torch.arange(8)
    got = posenc.attention(q, k, k, is_causal=True, positional=positional, q_hidden=x, k_hidden=x)
    want = reference_attention(
        q, k, k, positional=positional, q_positions=here, k_positions=here,
        visible=lambda row, i, j: j <= i, q_hidden=x, k_hidden=x,
    )  # fmt: skip
    torch.testing.assert_close(got, want)


def test_a_long_path_stays_within_rounding_of_float64():
    """A product of 300 reflections turns lengths around and never lets them grow."""
    torch.manual_seed(0)
    path, x = PaTH(1, 8, 4, std=1.0), torch.randn(1, 300, 4)
    q, k = torch.randn(2, 1, 1, 300, 8)
    narrow = path(q @ k.mT, q=q, k=k, scale=1.0, q_hidden=x, k_hidden=x)
    q, k, x = q.double(), k.double(), x.double()
    wide = path.double()(q @ k.mT, q=q, k=k, scale=1.0, q_hidden=x, k_hidden=x)
    assert (narrow - wide).abs().max() < 1e-4
    assert wide.tril().abs().max() <= (q.norm(dim=-1).max() * k.norm(dim=-1).max())
