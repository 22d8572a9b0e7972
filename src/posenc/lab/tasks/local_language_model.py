"""A language whose next token follows from the last and the third last."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import OF_TEXT, Batch, Task, draw, unscored

TOKENS = 16
NEAR = (5, 14, 1, 8, 11, 2, 15, 4, 12, 7, 0, 10, 3, 13, 6, 9)  # of the last token
FAR = (3, 9, 12, 6, 0, 15, 10, 5, 1, 14, 8, 2, 13, 11, 4, 7)  # of the third last


@dataclass(frozen=True)
class LocalLanguageModel(Task):
    """xₜ = (n(xₜ₋₁) + f(xₜ₋₃)) mod 16 with two fixed permutations; three tokens are drawn.

    All that is needed stands within three tokens at any length, so what is lost at longer rows is
    lost by the encoding alone. For a given last token the next one is a permutation of the third
    last, so that rows run through long cycles and never settle.
    """

    trained: int = 32
    tested: tuple[int, ...] = (32, 64, 128, 256)

    about = "The next token of a language in which it follows from the last three."
    vocabulary = TOKENS
    chance = 1 / TOKENS
    gate = 0.8
    steps = 1500
    published = OF_TEXT

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` tokens; the target is the next one, from the third token on."""
        near, far = torch.tensor(NEAR), torch.tensor(FAR)
        row = list(draw(generator, TOKENS, 3, batch))
        while len(row) <= length:
            row.append((near[row[-1]] + far[row[-3]]) % TOKENS)
        rows = torch.stack(row[: length + 1], 1)
        tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].clone()
        targets[:, :2] = unscored(targets[:, :2])
        return Batch(tokens, targets)
