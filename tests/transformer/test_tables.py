"""Tables are kept, gathered, and rebuilt when what shaped them changes; never otherwise."""

import pytest
import torch

from posenc import (
    ALiBi,
    Learned,
    Positional,
    Rotary,
    Sinusoidal,
    TokenEncoding,
)
from posenc.frequencies import Geometric
from posenc.transformer import (
    Encoder,
    KeyValueCache,
    Tables,
)

ROWS = {"sinusoidal": lambda: Sinusoidal(16), "rotary": lambda: Rotary(4)}


@pytest.fixture(params=ROWS)
def encoding(request):
    return ROWS[request.param]()


@pytest.fixture
def builds(monkeypatch):
    """The lengths of the tables that Sinusoidal builds."""
    lengths, build = [], Sinusoidal.table

    def table(self, positions, *, dtype=None):
        lengths.append(positions.shape[-1])
        return build(self, positions, dtype=dtype)

    monkeypatch.setattr(Sinusoidal, "table", table)
    return lengths


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "positions",
    [[0, 1, 2], [[5, 0], [63, 64]], [1000], [-3, 2], [10**12], [[]]],
    ids=str,
)
def test_rows_are_the_rows_of_the_table(encoding, positions, dtype):
    positions = torch.tensor(positions, dtype=torch.int64)
    want = encoding.table(positions, dtype=dtype)
    assert torch.equal(Tables().rows(encoding, positions, dtype=dtype), want)


@pytest.mark.parametrize("positions", [[0, 1, 5], [[0, 1], [70, 9]], [-4, 10**9]], ids=str)
def test_biases_are_the_table_of_the_bias(positions):
    positions, bias = torch.tensor(positions), ALiBi(4)
    got = Tables().biases(bias, positions[..., 1:], positions)
    assert torch.equal(got, bias.table(positions[..., 1:], positions))


def test_decoding_a_thousand_tokens_builds_a_handful_of_tables(builds):
    encoder = Encoder(16, 2, 1, positional=Positional(Sinusoidal(16)), is_causal=True).eval()
    cache = KeyValueCache()
    with torch.no_grad():
        for _ in range(300):
            encoder(torch.zeros(1, 1, 16), cache=cache)
    assert builds == [64, 128, 256, 512]


def test_far_positions_are_computed_and_not_kept(builds):
    tables, encoding = Tables(most=100), Sinusoidal(16)
    tables.rows(encoding, torch.tensor([100, 3]))
    assert (builds, len(tables.kept)) == ([2], 0)
    tables.rows(encoding, torch.tensor([99]))
    tables.rows(encoding, torch.tensor([98]))
    assert (builds, [kept.size for kept in tables.kept.values()]) == ([2, 100], [100])


def test_a_schedule_that_is_set_takes_effect():
    tables, rotary, positions = Tables(), Rotary(8), torch.arange(5)
    tables.rows(rotary, positions)
    rotary.frequencies = Geometric(8, base=3.0)
    assert torch.equal(tables.rows(rotary, positions), rotary.table(positions))
    tables.clear()
    assert not tables.kept


def test_learned_rows_are_never_kept():
    tables, encoding = Tables(), Learned(16, 32)
    tables.rows(encoding, torch.arange(3)).sum().backward()
    assert len(tables.kept) == 0
    assert encoding.weight.grad[:3].eq(1).all()


def test_a_table_first_built_in_inference_mode_serves_training():
    encoder = Encoder(16, 4, 1, positional=Positional(Sinusoidal(16), Rotary(4), ALiBi(4)))
    x = torch.randn(1, 6, 16)
    with torch.inference_mode():
        encoder(x)
    encoder(x).sum().backward()
    assert all(weight.grad is not None for weight in encoder.parameters())


class Sped(TokenEncoding):
    """A caller's own encoding, of a speed that it finds wherever it likes."""

    batch_first, keeps_norm, keeps_shift, dim = True, False, False, 2

    def __init__(self, speed):
        super().__init__()
        self.speed = speed

    def table(self, positions, *, dtype=None):
        return (positions.unsqueeze(-1) * self.speed(self)).expand(*positions.shape, 2)

    def encode(self, x, table):
        return x + table


def test_a_callers_encoding_is_asked_at_each_pass():
    tables, here, speed = Tables(), torch.arange(4), torch.ones(())
    encoding = Sped(lambda _: speed)
    first = tables.rows(encoding, here).clone()
    speed.fill_(2.0)
    assert torch.equal(tables.rows(encoding, here), 2 * first)
    assert len(tables.kept) == 0
