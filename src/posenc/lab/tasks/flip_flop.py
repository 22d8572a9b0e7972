"""Flip-flop: say the bit that was written last, over any number of ignored ones."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import Batch, Task, draw, unscored

WRITE, READ, IGNORE = 2, 3, 4  # the instructions; 0 and 1 are the bits


@dataclass(frozen=True)
class FlipFlop(Task):
    """Pairs of an instruction and a bit; after "read" comes the bit of the last "write".

    The first pair writes and the last one reads. What comes between is ignored with probability
    ``ignored``, else written or read as often.

    Args:
        ignored: 0.8 in the paper's FFL(0.8).

    Reference:
        Liu et al. 2023, "Exposing Attention Glitches with Flip-Flop Language Modeling"
        (arXiv:2306.00946), section 3.
    """

    trained: int = 24
    tested: tuple[int, ...] = (24, 48, 96, 192)
    ignored: float = 0.8

    about = "The bit that was written last, over any number of ignored ones."
    vocabulary = 5
    chance = 0.5
    steps = 800

    def __post_init__(self):
        super().__post_init__()
        if any(length % 2 for length in self.tested) or min(self.tested) < 4:
            raise ValueError(f"tested is {self.tested}; expected even lengths from 4 on.")
        if not 0 <= self.ignored < 1:
            raise ValueError(f"ignored is {self.ignored}; it must be from 0 to below 1.")

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` tokens; targets stand at "read" alone."""
        pairs = length // 2
        bits = draw(generator, 2, batch, pairs)
        kept = torch.rand(batch, pairs, generator=generator) >= self.ignored
        do = torch.where(kept, WRITE + draw(generator, 2, batch, pairs), IGNORE)
        do[:, 0], do[:, -1] = WRITE, READ
        last = torch.where(do == WRITE, torch.arange(pairs), 0).cummax(1).values
        bits = torch.where(do == READ, bits.gather(1, last), bits)
        tokens = torch.stack((do, bits), 2).flatten(1)
        targets = unscored(tokens)
        targets[:, ::2] = torch.where(do == READ, bits, targets[:, ::2])
        return Batch(tokens, targets)
