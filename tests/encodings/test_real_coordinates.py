"""Encodings at real coordinates: seconds, pixels and timesteps, against mpmath and fractions."""

from fractions import Fraction

import pytest
import torch
from mpmath import mp, mpf

from posenc import (
    FIRE,
    ALiBi,
    Positional,
    Rotary,
    Sinusoidal,
    attention,
)
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.positions import Coordinates
from posenc.transformer import Encoder, KeyValueCache

SECONDS = Coordinates([Fraction(1, 3), Fraction(1, 10), -2.5, Fraction(9999, 10)])


def mp_of(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


def wanted(number, channel, dim, oracle, dtype=torch.float32):
    """One channel of a sinusoidal encoding at a real position."""
    if channel.function == "zero":
        return 0.0
    with mp.workdps(60):
        e = channel.exponent
        angle = mp_of(number + channel.first) * oracle.frequency(1e4, e.numerator, e.denominator)
        return oracle.nearest(getattr(mp, channel.function)(angle), dtype)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_sinusoidal_convention_is_correctly_rounded(oracle, name):
    encoding, convention = Sinusoidal(10, convention=name), CONVENTIONS[name]
    table = encoding.table(SECONDS)
    for row, number in zip(table.tolist(), SECONDS.tolist(), strict=True):
        for index, got in enumerate(row):
            assert got == wanted(number, convention.channel(index, 10), 10, oracle), index


def plain(q, k, v, positional, q_at, k_at, seen):
    """Attention written out, with fractions for order."""
    for encoding in positional.queries_keys:
        q = encoding.encode_queries(q, encoding.table(q_at))
        k = encoding.encode_keys(k, encoding.table(k_at))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    for encoding in positional.scores:
        scores = encoding(scores, q_at, k_at)
    hidden = torch.tensor([[not seen(a, b) for b in k_at.tolist()] for a in q_at.tolist()])
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


HAIR, FAR = Fraction(1, 2**50), Coordinates([0.1, 3600.1, Fraction(7, 3)])
PLACES = {
    "few bits": (Coordinates([0.5, Fraction(7, 3)]), Coordinates([2.25, 0.5, 1, 0])),
    # Pairs that are a hair nearer than a window, as near, and a hair farther.
    "62 bits": (FAR, Coordinates.cat([FAR, FAR - 2, FAR - 2 + HAIR, FAR + 1 - HAIR, FAR + HAIR])),
}


@pytest.mark.parametrize("backend", [None, "dense", "explicit", "flex"])
@pytest.mark.parametrize("places", PLACES)
def test_attention_orders_by_value(places, backend):
    q_at, k_at = PLACES[places]
    q, k, v = torch.randn(1, 2, len(q_at), 8), *torch.randn(2, 1, 2, len(k_at), 8)
    positional = Positional(queries_keys=Rotary(8), scores=(ALiBi(2), FIRE(2)))
    given = {"positional": positional.requires_grad_(False), "backend": backend}
    given |= {"is_causal": True, "q_positions": q_at, "k_positions": k_at}
    for window in (None, 2):
        made = attention(q, k, v, window=window, **given)
        seen = lambda a, b: b <= a and (not window or a - window < b)  # noqa: B023, E731
        want = plain(q, k, v, positional, q_at, k_at, seen)
        torch.testing.assert_close(made, want, rtol=1e-5, atol=1e-6)


def encoder_of(window=None) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(Sinusoidal(16), Rotary(8), ALiBi(2))
    return Encoder(16, 2, 2, positional=positional, is_causal=True, window=window).eval()


@pytest.mark.parametrize("window", [None, 700])
@torch.no_grad()
def test_decoding_at_coordinates_is_one_pass(window):
    """Each step's own coordinates have a scale of their own, and the cache a common one."""
    encoder, x = encoder_of(window), torch.randn(2, 6, 16)
    seconds = Coordinates([0.1, 3600.1, 3600.2, 1 / 3, 7, 8.0])
    whole, cache, made = encoder(x, seconds), KeyValueCache(), []
    for part in (slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 6)):
        own = Coordinates(seconds[part].tolist())
        made.append(encoder(x[:, part], own, cache=cache))
    torch.testing.assert_close(torch.cat(made, 1), whole, rtol=0, atol=2e-6)
    assert cache.positions.tolist() == seconds.tolist()
    cache.crop(4)
    again = encoder(x[:, 4:], seconds[4:], cache=cache)
    torch.testing.assert_close(again, whole[:, 4:], rtol=0, atol=2e-6)
    with pytest.raises(ValueError, match="holds Coordinates"):
        encoder(x[:, :1], cache=cache)
