"""GRAPE: the exponential of its generator by torch's own, and a rotation in one plane."""

import pytest
import torch
from mpmath import mp, mpf

from posenc import GRAPE, Positional, Rotary
from posenc.transformer import Encoder, KeyValueCache

DIM = 6


@pytest.fixture
def grape():
    torch.manual_seed(0)
    return GRAPE(DIM, heads=2, speed=0.7, std=0.6).double()


@pytest.mark.parametrize("position", [0, 1, 7, -3, 40])
def test_it_is_the_exponential_of_its_generator(grape, position):
    a, b = grape.generators
    generator = a.unsqueeze(-1) * b.unsqueeze(-2) - b.unsqueeze(-1) * a.unsqueeze(-2)
    power = torch.linalg.matrix_exp(position * 0.7 * generator)
    x = torch.randn(2, 1, DIM).double()
    got = grape.encode_keys(x, grape.table([position], dtype=torch.float64))
    torch.testing.assert_close(got, (power @ x.mT).mT, rtol=1e-10, atol=1e-10)


def test_in_the_plane_of_two_channels_it_is_rotary():
    """a = (1, 0), b = (0, −1) turns (x, y) by the position, as Rotary's first pair does."""
    grape = GRAPE(2, heads=1)
    with torch.no_grad():
        grape.generators.copy_(torch.tensor([[[1.0, 0.0]], [[0.0, -1.0]]]))
    q, k = torch.randn(1, 3, 9, 2), torch.randn(1, 1, 9, 2)
    for mine, theirs in zip(grape(q, k), Rotary(2)(q, k), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_table_is_right_far_out(grape):
    position = 10**6 + 3
    with mp.workdps(50):
        for head in range(2):
            a, b = ([mpf(v) for v in row.tolist()] for row in grape.generators[:, head])
            inner = sum(x * y for x, y in zip(a, b, strict=True))
            s = mp.sqrt(sum(x * x for x in a) * sum(y * y for y in b) - inner**2)
            t = position * mpf(0.7) * s
            once, twice = grape.table([position], dtype=torch.float64)[0, :, head].tolist()
            assert once == pytest.approx(float(mp.sin(t) / s), abs=1e-9)
            assert twice == pytest.approx(float((1 - mp.cos(t)) / s**2), abs=1e-9)


def test_vectors_that_are_nearly_parallel_lose_no_digits():
    grape = GRAPE(8, heads=1).double()
    with torch.no_grad():
        grape.generators[1] = 1.7 * grape.generators[0] + 1e-6 * grape.generators[1]
    a, b = ([mpf(entry) for entry in vector[0].tolist()] for vector in grape.generators)
    with mp.workdps(40):
        along = sum(x * y for x, y in zip(a, b, strict=True)) ** 2
        speed = mp.sqrt(sum(x * x for x in a) * sum(x * x for x in b) - along)
        expected = float(mp.sin(1000 * speed) / speed)
    table = grape.table(torch.tensor([1000]), dtype=torch.float64)
    assert float(table[0, 0, 0]) == pytest.approx(expected, rel=1e-13)


def test_what_lies_across_the_plane_does_not_turn(grape):
    a, b = grape.generators[:, 0].detach()
    basis = torch.linalg.qr(torch.stack((a, b), dim=-1), mode="complete").Q
    across = basis[:, 2:].T.contiguous().unsqueeze(0).expand(2, -1, -1)
    table = grape.table(range(4), dtype=torch.float64)
    torch.testing.assert_close(grape.encode_keys(across, table)[0], across[0])


def test_a_head_without_a_plane_turns_nothing():
    grape = GRAPE(4, heads=1)
    with torch.no_grad():
        grape.generators.fill_(0.5)  # a and b are one direction
    x = torch.randn(1, 5, 4)
    torch.testing.assert_close(grape.encode_keys(x, grape.table(range(5))), x)


def test_query_heads_share_the_plane_of_their_key_head(grape):
    q = torch.randn(1, 2, 3, DIM).double()
    table = grape.table(range(3), dtype=torch.float64)
    doubled = grape.encode_queries(q.repeat_interleave(2, 1), table)
    torch.testing.assert_close(doubled, grape.encode_queries(q, table).repeat_interleave(2, 1))


def test_an_encoder_decodes_with_it_as_it_reads():
    torch.manual_seed(0)
    positional = Positional(queries_keys=GRAPE(8, heads=2))
    encoder = Encoder(32, 4, 2, positional=positional, kv_heads=2, is_causal=True).eval()
    x, cache = torch.randn(2, 12, 32), KeyValueCache()
    with torch.no_grad():
        steps = [encoder(x[:, i : i + 1], cache=cache) for i in range(12)]
        torch.testing.assert_close(torch.cat(steps, 1), encoder(x), rtol=1e-4, atol=1e-5)
