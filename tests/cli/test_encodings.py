"""Which encoding a command is about, and its rows: against the library's own tables."""

import pytest
import torch

from posenc import FIRE, ALiBi, Rotary, Sinusoidal, XPos
from posenc.cli.commands.showing import Table
from posenc.cli.encodings import chosen, learns, name_of, rows_of
from posenc.encodings.expression import encoding_from


def test_what_is_learned_follows_the_seed_and_leaves_the_callers_alone():
    state = torch.random.get_rng_state()
    asked = (Table(encoding="T5Bias(2)", seed=seed) for seed in (1, 1, 2))
    first, again, other = map(chosen, asked)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)
    assert learns(first)
    assert not learns(ALiBi(2))


@pytest.mark.parametrize(
    "text",
    [
        "ALiBi(heads=8)",
        "XPos(Rotary(Geometric(dim=8, base=10000.0)), origin=3)",
        "DAPE(2, FIRE(2, c=0.5, negative_slope=0.01))",
        "RemappedRotary(2, Rotary(8), ReRoPE(3))",
        "Learned(8, 16, std=0.5, dropout=0.1)",
        "AxialRotary(32, arithmetic='float32', heads_first=False)",
    ],
)
def test_names_are_expressions_again(text):
    made = encoding_from(text)
    again = encoding_from(name_of(made))
    assert (name_of(again), repr(again)) == (name_of(made), repr(made))


def test_rows_are_the_librarys_table():
    positions = torch.arange(-2, 3)
    sinusoidal, rotary, xpos = Sinusoidal(6), Rotary(6), XPos(Rotary(4))
    fope = encoding_from("FoPE(8, heads=2, trained_length=100)")
    for encoding, table in (
        (sinusoidal, sinusoidal.table(positions)),
        (rotary, rotary.table(positions).mT.flatten(1)),
        (xpos, xpos.table(positions).mT.flatten(1)),
        (fope, fope.table(positions).permute(0, 2, 3, 1).flatten(1)),
        (ALiBi(3), ALiBi(3).profile(positions).mT),
    ):
        rows = rows_of(encoding)
        assert torch.equal(rows.between(-2, 5), table)
        assert len(rows.names) == len(rows.keys) == len(set(rows.keys)) == table.shape[1]
    # GRAPE's table is sin t / s and (1 - cos t) / s², both 0 at the first position.
    assert rows_of(encoding_from("GRAPE(8, heads=2)")).names == ["0", "1", "2", "3"]


def test_a_bias_that_looks_at_the_query_has_rows_of_a_key_at_0():
    fire = FIRE(2, threshold=4.0)
    table = fire.table(torch.arange(10), torch.tensor([0]))[:, :, 0]
    torch.testing.assert_close(rows_of(fire).between(0, 10), table.mT.detach(), rtol=0, atol=1e-6)
    later = fire.table(torch.tensor([0]), torch.arange(1, 4))[:, 0].flip(1)
    torch.testing.assert_close(rows_of(fire).between(-3, 3), later.mT.detach(), rtol=0, atol=1e-6)
