"""The first tokens of LongRoPE, against the mixed embedding of its authors."""

import torch

from posenc import Rotary, StartTokenRotary
from posenc.frequencies import Geometric, LongRoPE
from posenc.positions import consecutive

DIM, TRAINED, FACTOR, FIRST = 8, 16, 4.0, 3
RESCALED = (1.0, 1.5, 2.5, 4.0)


def theirs(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin of ``MixedLongRoPEScaledRotaryEmbedding``: rescaled, with the first rows put back
    to those of the plain embedding, which has no magnitude factor.
    """
    plain = 1.0 / 10_000.0 ** (torch.arange(0, DIM, 2).double() / DIM)
    magnitude = (1 + torch.tensor(FACTOR).double().log() / torch.tensor(TRAINED).log()).sqrt()
    angles = torch.outer(torch.arange(length).double(), plain / torch.tensor(RESCALED))
    cos, sin = angles.cos() * magnitude, angles.sin() * magnitude
    origin = torch.outer(torch.arange(length).double(), plain)
    cos[:FIRST], sin[:FIRST] = origin[:FIRST].cos(), origin[:FIRST].sin()
    return cos, sin


def encoding(**arguments) -> StartTokenRotary:
    longrope = LongRoPE(Geometric(DIM), (1.0,) * 4, RESCALED, TRAINED, FACTOR).at(TRAINED + 1)
    return StartTokenRotary(Rotary(longrope, **arguments), Rotary(DIM, **arguments), count=FIRST)


def test_it_is_the_mixed_embedding_of_the_authors():
    cos, sin = theirs(20)
    table = encoding().table(range(20), dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], cos, atol=1e-6, rtol=0)  # their magnitude: float32
    torch.testing.assert_close(table[:, 1], sin, atol=1e-6, rtol=0)


def test_each_row_is_that_of_one_of_the_two():
    made = encoding()
    table = made.table(consecutive(7))
    assert torch.equal(table[:FIRST], made.start.table(consecutive(FIRST)))
    assert torch.equal(table[FIRST:], made.rotary.table(consecutive(4, start=FIRST)))
    assert torch.equal(StartTokenRotary(made.rotary, made.start, 0).table(consecutive(7)),
                       made.rotary.table(consecutive(7)))  # fmt: skip


def test_a_negative_position_is_before_the_first_too():
    assert torch.equal(encoding().table([-5]), Rotary(DIM).table([-5]))
