"""Copy: say the row again."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import Batch, Published, Task, draw, unscored

LETTERS = 16
AGAIN = LETTERS


@dataclass(frozen=True)
class Copy(Task):
    """Letters, a mark, and the letters again; right where every one of them is.

    The length counts the letters; a row has twice as many tokens.
    """

    trained: int = 16
    tested: tuple[int, ...] = (16, 24, 32)

    about = "The row once more; right where all of it is."
    vocabulary = LETTERS + 1
    measure = "exact match"
    is_exact = True
    chance = 0.0
    steps = 2000
    shortest = 1
    published = (
        Published(
            "Kazemnejad et al. 2023 (arXiv:2305.19466), the authors' published results",
            "copy of random tokens, out of distribution; the middle of what is reported",
            "exact match",
            {"T5": 0.425, "ALiBi": 0.33, "NoPE": 0.31, "Sinusoidal": 0.025, "Rotary": 0.01},
        ),
    )

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` letters and their copies."""
        letters = draw(generator, LETTERS, batch, length)
        again = torch.full((batch, 1), AGAIN)
        tokens = torch.cat((letters, again, letters[:, :-1]), 1)
        targets = unscored(tokens)
        targets[:, length:] = letters
        return Batch(tokens, targets)

    def tokens(self, length: int) -> int:
        """Letters, a mark, and all letters but the last."""
        return 2 * length
