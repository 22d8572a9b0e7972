"""Counting: from one number to another, and then stop."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import Batch, Task, draw, unscored

NUMBERS = 128
BEGIN, STOP = NUMBERS, NUMBERS + 1


@dataclass(frozen=True)
class Counting(Task):
    """ "a b :" and then a, a + 1, …, b, stop; right where every token is.

    Numbers are tokens and all of them occur in training; longer rows are only longer.

    Reference:
        Zhou et al. 2023, "What Algorithms can Transformers Learn?" (arXiv:2310.16028), section 4.
    """

    trained: int = 16
    tested: tuple[int, ...] = (16, 32, 64)

    about = "From one number to another, and then stop; right where all of it is."
    vocabulary = NUMBERS + 2
    measure = "exact match"
    is_exact = True
    chance = 0.0
    steps = 1500
    shortest = 1

    def __post_init__(self):
        super().__post_init__()
        if max(self.tested) > NUMBERS:
            raise ValueError(f"tested is {self.tested}; expected at most {NUMBERS}.")

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows that count ``length`` numbers."""
        first = draw(generator, NUMBERS - length + 1, batch, 1)
        counted = first + torch.arange(length)
        begin, stop = torch.full((batch, 1), BEGIN), torch.full((batch, 1), STOP)
        tokens = torch.cat((first, counted[:, -1:], begin, counted), 1)
        targets = unscored(tokens)
        targets[:, 2:] = torch.cat((counted, stop), 1)
        return Batch(tokens, targets)

    def tokens(self, length: int) -> int:
        """Both ends, a mark, and the numbers."""
        return length + 3
