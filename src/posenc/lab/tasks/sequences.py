"""Tasks whose answer is a whole sequence, and the order of two words."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from posenc.lab.tasks.base import Batch, Published, Task, draw, unscored

LETTERS = AGAIN = 16  # the mark comes after the letters
NUMBERS = 128
BEGIN, STOP = NUMBERS, NUMBERS + 1  # of counting
PLUS, EQUALS = 10, 11
ASKED, FIRST, SECOND = 0, 1, 2  # the question, and the two words whose order is asked for
WORDS = 16  # all others


@dataclass(frozen=True)
class ExactMatch(Task):
    """A row scores 1 where all of its targets are met, else 0."""

    measure = "exact match"
    chance = 0.0
    shortest = 1

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        return (super().score(logits, batch) == 1.0).float()


@dataclass(frozen=True)
class Copy(ExactMatch):
    """Letters, a mark, and the letters again; right where every one of them is.

    The length counts the letters; a row has twice as many tokens.
    """

    trained: int = 16
    tested: tuple[int, ...] = (16, 24, 32)

    about = "The row once more; right where all of it is."
    vocabulary = LETTERS + 1
    steps = 2000
    published = (
        Published(
            "Kazemnejad et al. 2023 (arXiv:2305.19466), the authors' published results",
            "copy of random tokens, out of distribution; the middle of what is reported",
            "exact match",
            {"T5": 0.425, "ALiBi": 0.33, "NoPE": 0.31, "Sinusoidal": 0.025, "Rotary": 0.01},
        ),
    )

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        letters = draw(generator, LETTERS, batch, length)
        tokens = torch.cat((letters, signs(batch, AGAIN), letters[:, :-1]), 1)
        targets = unscored(tokens)
        targets[:, length:] = letters
        return Batch(tokens, targets)

    def tokens(self, length: int) -> int:
        return 2 * length


@dataclass(frozen=True)
class Counting(ExactMatch):
    """ "a b :" and then a, a + 1, …, b, stop; right where every token is.

    Numbers are tokens and all of them occur in training; longer rows are only longer.

    Reference:
        Zhou et al. 2023, "What Algorithms can Transformers Learn?" (arXiv:2310.16028), section 4.
    """

    trained: int = 16
    tested: tuple[int, ...] = (16, 32, 64)

    about = "From one number to another, and then stop; right where all of it is."
    vocabulary = NUMBERS + 2
    steps = 1500

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        first = draw(generator, NUMBERS - length + 1, batch, 1)
        counted = first + torch.arange(length)
        tokens = torch.cat((first, counted[:, -1:], signs(batch, BEGIN), counted), 1)
        targets = unscored(tokens)
        targets[:, 2:] = torch.cat((counted, signs(batch, STOP)), 1)
        return Batch(tokens, targets)

    def tokens(self, length: int) -> int:
        return length + 3


@dataclass(frozen=True)
class ReversedAddition(ExactMatch):
    """ "a + b =" and the sum, lowest digit first; right where every digit is.

    The length counts the digits of a and of b. With ``coupled`` positions, digits of the same
    weight stand at the same position in a, b and the sum, and a row begins anywhere, so that the
    positions of longer rows are trained too. Else positions count tokens.

    Reference:
        Cho et al. 2024, "Position Coupling" (arXiv:2405.20671), section 4.
    """

    trained: int = 8
    tested: tuple[int, ...] = (8, 12, 16)
    coupled: bool = False

    about = "The sum of two numbers, lowest digit first; right where all of it is."
    vocabulary = 12
    steps = 3000

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        a, b = draw(generator, 10, 2, batch, length)
        carry, total = torch.zeros_like(a[:, 0]), torch.zeros(batch, length + 1, dtype=torch.long)
        for place in range(length):
            both = a[:, place] + b[:, place] + carry
            total[:, place], carry = both % 10, both // 10
        total[:, -1] = carry
        tokens = torch.cat((a, signs(batch, PLUS), b, signs(batch, EQUALS), total[:, :-1]), 1)
        targets = unscored(tokens)
        targets[:, 2 * length + 1 :] = total
        if not self.coupled:
            return Batch(tokens, targets)
        digits = torch.arange(length)
        # "=" predicts the lowest digit and stands before it; "+" stands behind the highest one.
        row = torch.cat((digits, torch.tensor([length]), digits, torch.tensor([-1]), digits))
        return Batch(tokens, targets, 1 + draw(generator, self.places - length - 1, batch, 1) + row)

    def tokens(self, length: int) -> int:
        return 3 * length + 2


@dataclass(frozen=True)
class WordOrder(Task):
    """A question, then words with the two in question among them; the answer stands at the first.

    Without positions the row is a set, so that the answer cannot be better than chance.
    """

    trained: int = 12
    tested: tuple[int, ...] = (12, 24, 48)

    about = "Which of two words comes first; the model sees the whole row."
    vocabulary = 3 + WORDS
    chance = 0.5
    steps = 600
    is_causal = False

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        tokens = 3 + draw(generator, WORDS, batch, length)
        tokens[:, 0] = ASKED
        places = 1 + torch.rand(batch, length - 1, generator=generator).argsort(1)[:, :2]
        tokens.scatter_(1, places, torch.tensor([[FIRST, SECOND]]).expand(batch, 2))
        targets = unscored(tokens)
        targets[:, 0] = (places[:, 0] < places[:, 1]).long()
        return Batch(tokens, targets)


def signs(batch: int, token: int) -> Tensor:
    """A column of one token."""
    return torch.full((batch, 1), token)
