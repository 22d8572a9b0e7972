"""Encodings at real coordinates: seconds, pixels and timesteps, against mpmath and fractions."""

import re
from fractions import Fraction
from math import log

import pytest
import torch
from mpmath import mp, mpf

import posenc
from posenc import (
    CABLE,
    FIRE,
    ALiBi,
    AxialRotary,
    CoPE,
    Forgetting,
    Learned,
    MultimodalRotary,
    Positional,
    QueryTemperature,
    RoPEMixed,
    Rotary,
    Shaw,
    Sinusoidal,
    T5Bias,
    attention,
)
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import Geometric, YaRN
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


def test_a_scaled_schedule_at_coordinates(oracle):
    """What one coordinate turns is the schedule's frequency, whatever the schedule."""
    schedule = YaRN(Geometric(8), factor=4, trained_length=1000)
    table = Rotary(schedule).table(Coordinates([0.5]))
    for pair, radians in enumerate(schedule.turns()):
        with mp.workdps(80):
            cos, sin = mp.cos_sin(mpf(radians) / 2**192 * mp.pi)  # half of 2π
            for part, value in ((0, cos), (1, sin)):
                value *= mpf(schedule.attention_factor)
                assert table[0, part, pair].item() == oracle.nearest(value, torch.float32)


def test_tape_is_a_scale():
    """sin and cos of (position · div_term) · (d_model / max_len), as ConvTran writes it."""
    dim, length = 10, 64
    places = torch.arange(length, dtype=torch.float64)[:, None]
    div_term = torch.exp(torch.arange(0, dim, 2).double() * (-log(10_000.0) / dim))
    angle = places * div_term * (dim / length)
    table = Sinusoidal(dim).table(Coordinates(range(length), scale=Fraction(dim, length)))
    torch.testing.assert_close(table[:, 0::2], angle.sin().float())
    torch.testing.assert_close(table[:, 1::2], angle.cos().float())


def test_axes_have_scales_of_their_own():
    y, x = Coordinates([Fraction(1, 3), 2]), Coordinates([0.25, -1])
    points = Coordinates.stack([y, x], dim=-1)
    both = Coordinates(points.values * torch.tensor([4, 3]), scale=Fraction(1, 12))
    for encoding in (AxialRotary(8), RoPEMixed(8, heads=2)):
        torch.testing.assert_close(
            encoding.table(points), encoding.table(both), rtol=0, atol=2**-23
        )
    t = Coordinates.stack([y, y, y], dim=-1)
    rotary = Rotary(12)
    table = MultimodalRotary(rotary, (2, 2, 2)).table(t)
    assert torch.equal(table, rotary.table(y))


LOOKUPS = {
    "Learned": lambda: Learned(8, max_len=16).table(SECONDS),
    "QueryTemperature": lambda: QueryTemperature(8).table(SECONDS),
    "T5Bias": lambda: T5Bias(2).table(SECONDS, SECONDS),
    "Shaw": lambda: Shaw(2, 8, reach=4).table(SECONDS, SECONDS),
    "CoPE": lambda: CoPE(2, 8, max_positions=4).table(SECONDS, SECONDS),
    "Forgetting": lambda: Forgetting(2, 8).table(SECONDS, SECONDS),
    "CABLE": lambda: CABLE(2, 8).table(SECONDS, SECONDS),
    "kept rows": lambda: Sinusoidal(8).encode(torch.zeros(4, 8), torch.zeros(9, 8), SECONDS),
    "remapping": lambda: Positional(positions=posenc.SHAPE(9)).remapped(SECONDS),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_lookups_and_counts_refuse(name):
    with pytest.raises(TypeError, match=re.escape("are Coordinates, real numbers")):
        LOOKUPS[name]()


# Attention ----------------------------------------------------------------------------------------


def plain(q, k, v, positional, q_at, k_at, seen):
    """Attention written out, with fractions for order."""
    queries_keys = positional.queries_keys
    for encoding in queries_keys:
        q = encoding.encode_queries(q, encoding.table(q_at))
        k = encoding.encode_keys(k, encoding.table(k_at))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    for encoding in positional.scores:
        scores = encoding(scores, q_at, k_at)
    hidden = torch.tensor([[not seen(a, b) for b in k_at.tolist()] for a in q_at.tolist()])
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize("backend", [None, "dense", "explicit", "flex"])
@pytest.mark.parametrize(
    "positional",
    [Positional(queries_keys=Rotary(8)), Positional(scores=ALiBi(2)), Positional(scores=FIRE(2))],
    ids=["rotary", "alibi", "fire"],
)
def test_attention_orders_by_value(positional, backend):
    if backend == "flex":
        positional = positional.requires_grad_(False)
    q_at, k_at = Coordinates([0.5, Fraction(7, 3)]), Coordinates([2.25, 0.5, 1, 0])
    q, k, v = torch.randn(1, 2, 2, 8), torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8)
    given = {"positional": positional, "q_positions": q_at, "k_positions": k_at}
    made = attention(q, k, v, is_causal=True, backend=backend, **given)
    want = plain(q, k, v, positional, q_at, k_at, lambda a, b: b <= a)
    torch.testing.assert_close(made, want, rtol=1e-5, atol=1e-6)
    made = attention(q, k, v, is_causal=True, window=2, backend=backend, **given)
    want = plain(q, k, v, positional, q_at, k_at, lambda a, b: a - 2 < b <= a)
    torch.testing.assert_close(made, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", [None, "explicit", "flex"])
def test_attention_orders_what_62_bits_hold(backend):
    """Also by a window, with pairs that are a hair nearer than it, as near, and a hair farther."""
    hair = Fraction(1, 2**50)
    q_at = Coordinates([0.1, 3600.1, Fraction(7, 3)])
    k_at = Coordinates.cat([q_at, q_at - 2, q_at - 2 + hair, q_at + 1 - hair, q_at + hair])
    assert q_at.scale == k_at.scale == hair
    q, k, v = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 15, 8), torch.randn(1, 2, 15, 8)
    positional = Positional(queries_keys=Rotary(8), scores=ALiBi(2))
    given = {"positional": positional, "q_positions": q_at, "k_positions": k_at}
    made = attention(q, k, v, is_causal=True, window=2, backend=backend, **given)
    want = plain(q, k, v, positional, q_at, k_at, lambda a, b: a - 2 < b <= a)
    torch.testing.assert_close(made, want, rtol=1e-5, atol=1e-6)
    made = attention(q, k, v, is_causal=True, backend=backend, **given)
    want = plain(q, k, v, positional, q_at, k_at, lambda a, b: b <= a)
    torch.testing.assert_close(made, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "seconds",
    [
        Coordinates([Fraction(1, 3), 0.5, 2, Fraction(9999, 10), 1000, 1001]),
        Coordinates([0.1, 3600.1, 3600.2, 1 / 3, 7, 8.0]),
    ],
    ids=["exact", "rounded"],
)
@pytest.mark.parametrize("window", [None, 700])
def test_decoding_at_coordinates_is_one_pass(seconds, window):
    """Each step's own coordinates have a scale of their own, and the cache a common one."""
    torch.manual_seed(0)
    positional = Positional(Sinusoidal(16), Rotary(8), ALiBi(2))
    encoder = Encoder(
        dim=16, heads=2, depth=2, positional=positional, is_causal=True, window=window
    ).eval()
    x = torch.randn(2, 6, 16)
    with torch.no_grad():
        whole, cache, made = encoder(x, seconds), KeyValueCache(), []
        for part in (slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 6)):
            own = Coordinates(seconds[part].tolist())
            made.append(encoder(x[:, part], own, cache=cache))
        torch.testing.assert_close(torch.cat(made, 1), whole, rtol=0, atol=2e-6)
        assert cache.positions.tolist() == seconds.tolist()
        cache.crop(4)
        again = encoder(x[:, 4:], seconds[4:], cache=cache)
        torch.testing.assert_close(again, whole[:, 4:], rtol=0, atol=2e-6)


def test_decoding_rows_at_times_of_their_own():
    """Padded on the left, and turned around in the middle, as by a beam search."""
    torch.manual_seed(0)
    positional = Positional(queries_keys=Rotary(8), scores=ALiBi(2))
    encoder = Encoder(dim=16, heads=2, depth=1, positional=positional, is_causal=True).eval()
    x, real = torch.randn(2, 4, 16), torch.tensor([[True] * 4, [False, True, True, True]])
    at = Coordinates([[0.1, 0.5, 1.0, 3.5], [0.0, 0.25, Fraction(1, 3), 9]])
    with torch.no_grad():
        whole = encoder(x, at, padding_mask=real)
        cache = KeyValueCache()
        encoder(x[:, :3], at[:, :3], padding_mask=real[:, :3], cache=cache)
        cache.reorder(torch.tensor([1, 0]))
        last = encoder(x[:, 3:].flip(0), at[[1, 0], 3:], cache=cache)
    torch.testing.assert_close(last.flip(0), whole[:, 3:], rtol=0, atol=2e-6)
    assert cache.positions.tolist() == at[[1, 0]].tolist()


def test_coordinates_after_whole_positions_in_a_cache():
    encoder = Encoder(
        dim=16, heads=2, depth=1, positional=Positional(queries_keys=Rotary(8)), is_causal=True
    ).eval()
    x = torch.randn(1, 3, 16)
    with torch.no_grad():
        whole, cache = encoder(x, Coordinates([0, 1, 1.5])), KeyValueCache()
        encoder(x[:, :2], cache=cache)
        last = encoder(x[:, 2:], Coordinates([1.5]), cache=cache)
    torch.testing.assert_close(last, whole[:, 2:], rtol=0, atol=2e-6)
    with pytest.raises(ValueError, match="holds Coordinates"):
        encoder(x[:, :1], cache=cache)
    assert cache.length == 3


def test_a_cache_of_fixed_size_takes_whole_positions():
    encoder = Encoder(dim=16, heads=2, depth=1, positional=Positional(), is_causal=True)
    with pytest.raises(TypeError, match="Coordinates"):
        encoder(torch.randn(1, 4, 16), SECONDS, cache=KeyValueCache(8))
