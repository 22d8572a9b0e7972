"""k-back: the k-th last letter, where only letters count."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.arguments import check_whole
from posenc.lab.tasks.base import IGNORED, Batch, Task, draw

LETTERS, FILLERS = 8, 8


@dataclass(frozen=True)
class KBack(Task):
    """Letters among fillers; at each token the target is the k-th last letter.

    Fillers do not count, so that the distance in tokens varies and the one in letters does not.

    Args:
        k: 1 is the last letter.

    Reference:
        After the selective counting of Golovneva et al. 2024, "Contextual Position Encoding"
        (arXiv:2405.18719), section 5.
    """

    trained: int = 48
    tested: tuple[int, ...] = (48, 96)
    k: int = 3

    vocabulary = LETTERS + FILLERS
    chance = 1 / LETTERS
    gate = 0.9
    steps = 1500

    def __post_init__(self):
        super().__post_init__()
        check_whole(k=self.k)
        shortest = min(self.tested)
        if self.k > shortest // 2:
            raise ValueError(f"k is {self.k}; expected at most half of a row, {shortest // 2}.")

    @property
    def about(self) -> str:  # type: ignore[override]
        """Which letter."""
        return f"Letter {self.k} from the end, where only letters count."

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` tokens, about half of them letters."""
        tokens = draw(generator, LETTERS + FILLERS, batch, length)
        count = (tokens < LETTERS).cumsum(1)  # letters so far
        # Letters in their order, one a column: the n-th of a row stands in column n.
        letters = torch.zeros(batch, length + 1, dtype=torch.long)
        letters.scatter_(1, torch.where(tokens < LETTERS, count, 0), tokens)
        wanted = count - self.k + 1
        targets = letters.gather(1, wanted.clamp(min=0))
        return Batch(tokens, torch.where(wanted >= 1, targets, IGNORED))
