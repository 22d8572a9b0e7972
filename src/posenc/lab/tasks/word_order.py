"""Word order: which of two words comes first, in an encoder that sees all at once."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import Batch, Task, draw, unscored

ASKED, FIRST, SECOND = 0, 1, 2  # the question, and the two words whose order is asked for
WORDS = 16  # all others


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
        """Rows of ``length`` tokens; the answer is 1 where the first word is the first."""
        tokens = 3 + draw(generator, WORDS, batch, length)
        tokens[:, 0] = ASKED
        places = 1 + torch.rand(batch, length - 1, generator=generator).argsort(1)[:, :2]
        tokens.scatter_(1, places, torch.tensor([[FIRST, SECOND]]).expand(batch, 2))
        targets = unscored(tokens)
        targets[:, 0] = (places[:, 0] < places[:, 1]).long()
        return Batch(tokens, targets)
