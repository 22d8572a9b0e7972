"""Values of cos and sin: held against 130 digits, at random and at the most awkward positions."""

import math
import random
from fractions import Fraction

import pytest
import torch
from mpmath import mp, mpf
from tests.oracle import DIGITS
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc.frequencies import FromCheckpoint, Geometric
from posenc.numerics.sincos import FEW_PHASES, SinCos
from posenc.positions import consecutive

SCHEDULES = [(1e4, 64), (1e4, 128), (5e5, 64), (5e5, 128), (100.0, 64), (100.0, 128)]
NARROW = [torch.float32, torch.bfloat16, torch.float16]
MOST = 3.0
"""What float64 may err by, in units in the last place; narrower dtypes are correctly rounded."""


def scattered(count: int, seed: int) -> list[int]:
    """Random positions of every magnitude up to 2^62, on both sides of 0."""
    draw = random.Random(seed)
    return [draw.choice([-1, 1]) * draw.randrange(2 ** draw.randint(1, 62)) for _ in range(count)]


def check(oracle, sincos, frequencies, positions, columns):
    """``columns[i]`` is the frequency to look at in row i; every dtype keeps the promise there."""
    row = torch.arange(len(positions))
    truths = [
        oracle.cos_sin(p, frequencies[column]) for p, column in zip(positions, columns, strict=True)
    ]
    for dtype in (*NARROW, torch.float64):
        tables = sincos.cos_sin(torch.tensor(positions), dtype)
        for which, table in enumerate(tables):
            assert table.dtype == dtype
            for got, truth in zip(
                table[row, columns].double().tolist(), (t[which] for t in truths), strict=True
            ):
                if dtype == torch.float64:
                    assert oracle.ulps(got, truth, dtype) <= MOST
                else:
                    assert got == oracle.nearest(truth, dtype)


@pytest.mark.parametrize(("base", "dim"), SCHEDULES)
def test_random_positions(oracle, base, dim):
    positions = scattered(300, seed=dim)
    columns = [random.Random(p).randrange(dim // 2) for p in positions]
    check(oracle, SinCos(Geometric(dim, base)), oracle.frequencies(base, dim), positions, columns)


@pytest.mark.parametrize(("base", "dim"), SCHEDULES)
def test_positions_next_to_a_multiple_of_a_quarter_turn(oracle, base, dim):
    """There the sine or the cosine is as small as it ever gets, and all of its digits count."""
    frequencies = oracle.frequencies(base, dim)
    awkward = [
        ((-1) ** column * p, column)
        for column in range(0, dim // 2, dim // 16)
        for p in oracle.near_multiples(frequencies[column], 2**62)
    ]
    assert len(awkward) > 200
    check(oracle, SinCos(Geometric(dim, base)), frequencies, *zip(*awkward, strict=True))


@pytest.mark.parametrize("function", ["cos", "sin"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_positions_next_to_a_midpoint(oracle, dtype, function):
    """180 of each, as no float64 settles them; asked for all at once, and one by one."""
    sincos, which = SinCos(Geometric(64)), ("cos", "sin").index(function)
    found = list(oracle.next_to_midpoints(dtype, function, 180, seed=4))
    positions = torch.tensor([position for position, _, _ in found])
    assert len(positions) * len(sincos) <= FEW_PHASES
    together = sincos.cos_sin(positions, dtype)[which].double()
    for row, (position, column, truth) in enumerate(found):
        assert together[row, column].item() == oracle.nearest(truth, dtype)
        if row < 20:
            alone = sincos.cos_sin(torch.tensor(position), dtype)[which]
            assert alone[column].item() == oracle.nearest(truth, dtype)


def test_a_position_that_float64_gets_wrong():
    """cos(2684198961900308522) = −0.709954828…, which float64 takes for the neighbor's half."""
    cos, _ = SinCos(Geometric(2)).cos_sin(torch.tensor([2684198961900308522]))
    assert f"{cos.item():.8f}" == "-0.70995480"


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_compiled_graph_is_next_to_right(oracle, dtype):
    """It cannot ask whether a value is in doubt."""
    sincos = SinCos(Geometric(64))
    found = list(oracle.next_to_midpoints(dtype, "cos", 20, seed=5))
    positions = torch.tensor([position for position, _, _ in found])
    run = torch.compile(lambda p: sincos.cos_sin(p, dtype)[0], backend="eager", fullgraph=True)
    made = run(positions).double()
    for row, (_, column, truth) in enumerate(found):
        assert oracle.ulps(made[row, column].item(), truth, dtype) <= 0.5000001


@pytest.mark.parametrize("position", [2**63 - 1, -(2**63), -(2**63) + 1, 2**62, 0, -1])
def test_the_ends_of_the_integers(oracle, position):
    frequencies = oracle.frequencies(1e4, 64)
    check(oracle, SinCos(Geometric(64)), frequencies, [position] * 32, list(range(32)))


def test_a_checkpoints_frequencies_are_the_rationals_that_they_are(oracle):
    given = torch.tensor([1.0, 0.1, 1e-12, 0.0, 3.0e-3, 100.0, -0.7])
    frequencies = [mpf(w) for w in given.double().tolist()]
    positions = scattered(140, seed=3)
    columns = [i % len(given) for i in range(140)]
    check(oracle, SinCos(FromCheckpoint(given)), frequencies, positions, columns)


# The common formulas, bit for bit.


def bits(table: torch.Tensor) -> torch.Tensor:
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[table.element_size()]
    return table.contiguous().view(whole)


@pytest.mark.parametrize("dim", [6, 64, 512])
def test_float32_log_is_the_tutorials_formula(dim):
    position = torch.arange(5000).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    cos, sin = SinCos(Geometric(dim), "float32-log").cos_sin(consecutive(5000))
    assert torch.equal(bits(cos), bits(torch.cos(position * div_term)))
    assert torch.equal(bits(sin), bits(torch.sin(position * div_term)))


@pytest.mark.parametrize(("dim", "base"), [(64, 10_000.0), (128, 500_000.0), (96, 1e6)])
def test_float32_is_the_formula_of_transformers_rotary(dim, base):
    config = LlamaConfig(
        hidden_size=2 * dim,
        num_attention_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    positions = torch.cat([consecutive(2048), consecutive(100, start=1_000_000)])
    theirs = LlamaRotaryEmbedding(config)(torch.zeros(1), positions.unsqueeze(0))
    ours = SinCos(Geometric(dim, base), "float32").cos_sin(positions)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(bits(mine), bits(other[0, :, : dim // 2]))


def test_the_float32_formula_drifts_and_the_exact_one_does_not(oracle):
    positions = consecutive(64, start=1_000_000)
    frequencies = oracle.frequencies(1e4, 128)
    truth = torch.tensor(
        [[float(oracle.cos_sin(p, w)[0]) for w in frequencies] for p in positions.tolist()],
        dtype=torch.float64,
    )

    def error(arithmetic):
        cos, _ = SinCos(Geometric(128), arithmetic).cos_sin(positions)
        return (cos.double() - truth).abs().max().item()

    assert error("float32") > 1e-2
    assert error("float32-log") > 1e-2
    assert error("exact") < 6e-8


# The same number however it is asked for.


@pytest.mark.parametrize("arithmetic", ["exact", "float32", "float32-log"])
@pytest.mark.parametrize("dtype", [*NARROW, torch.float64], ids=str)
def test_a_row_does_not_depend_on_its_company(arithmetic, dtype):
    """A slice, a gather, a batch and a single position give the bits of the long run."""
    sincos = SinCos(Geometric(64), arithmetic)
    long = sincos.cos_sin(consecutive(2000, start=-700), dtype)
    asked = torch.tensor([[3, 3, 1299], [-700, 0, 1]])
    for whole, some, one in zip(
        long,
        sincos.cos_sin(asked, dtype),
        sincos.cos_sin(torch.tensor(1299), dtype),
        strict=True,
    ):
        assert torch.equal(bits(some), bits(whole[asked + 700]))
        assert torch.equal(bits(one), bits(whole[1999]))


@pytest.mark.parametrize("asked", ["backwards", "shuffled", "repeated", "two rows", "with gaps"])
def test_positions_in_any_order_are_gathered_from_the_run(asked):
    sincos = SinCos(Geometric(64))
    run = consecutive(3000, start=-500)
    draw = torch.Generator().manual_seed(1)
    positions = {
        "backwards": run.flip(0),
        "shuffled": run[torch.randperm(3000, generator=draw)],
        "repeated": run[torch.randint(3000, (4000,), generator=draw)],
        "two rows": torch.stack([run, run.flip(0)]),
        "with gaps": run[::2],
    }[asked]
    whole = sincos.cos_sin(run)
    for got, expected in zip(sincos.cos_sin(positions), whole, strict=True):
        assert got.shape == (*positions.shape, 32)
        assert torch.equal(bits(got), bits(expected[positions + 500]))


def test_turns_at_a_scale_err_by_half_a_unit():
    draw, schedule = random.Random(3), Geometric(32, 5e5)
    for _ in range(50):
        scale = Fraction(draw.randrange(1, 10**6), draw.randrange(1, 10**9))
        made = SinCos(schedule).at_scale(scale).turns
        with mp.workdps(DIGITS):
            for turns, i in zip(made, range(0, 32, 2), strict=True):
                exact = mpf(5e5) ** (-mpf(i) / 32) / (2 * mp.pi) * 2**192
                exact *= mpf(scale.numerator) / scale.denominator
                assert abs(turns - exact) < 0.5 + 2**-30


def test_a_factor_of_the_common_formula_comes_after_its_rounding():
    """And a step too coarse or too fine for 192 bits has no phase."""
    sincos, positions = SinCos(Geometric(8), "float32"), consecutive(9)
    plain, doubled = sincos.cos_sin(positions), sincos.cos_sin(positions, factor=1.5)
    assert all(torch.equal(a * 1.5, b) for a, b in zip(plain, doubled, strict=True))
    exact = SinCos(Geometric(8))
    for scale in (Fraction(2**64) + 1, Fraction(1, 2**130)):
        with pytest.raises(ValueError, match="steps"):
            exact.at_scale(scale)
    assert exact.at_scale(Fraction(2**64)).turns
