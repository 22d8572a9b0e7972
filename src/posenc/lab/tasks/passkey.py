"""Passkey: say at the end the key that stood somewhere in the text."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import Batch, Task, draw, unscored

KEYS, FILLERS = 16, 16
MARK, ASKED = KEYS + FILLERS, KEYS + FILLERS + 1


@dataclass(frozen=True)
class Passkey(Task):
    """Fillers with a mark and a key behind it at any place; the last token asks for the key.

    Keys without a mark stand among the fillers too, so that it must be found by its mark.

    Reference:
        Mohtashami and Jaggi 2023, "Landmark Attention" (arXiv:2305.16300), section 4.2.
    """

    trained: int = 32
    tested: tuple[int, ...] = (32, 128, 512, 1024)

    about = "The key behind a mark somewhere in the row, asked for at its end."
    vocabulary = KEYS + FILLERS + 2
    chance = 1 / KEYS
    steps = 1500
    shortest = 8

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` tokens; the target stands at the last."""
        tokens = draw(generator, KEYS + FILLERS, batch, length)
        rows = torch.arange(batch)
        place = draw(generator, length - 2, batch)  # of the mark; the key follows it
        key = draw(generator, KEYS, batch)
        tokens[rows, place], tokens[rows, place + 1], tokens[:, -1] = MARK, key, ASKED
        targets = unscored(tokens)
        targets[:, -1] = key
        return Batch(tokens, targets)
