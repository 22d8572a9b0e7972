"""k-front: the k-th token of the row, however far it has gone."""

from dataclasses import dataclass

from torch import Generator

from posenc.arguments import check_whole
from posenc.lab.tasks.base import Batch, Task, draw, unscored

LETTERS = 8


@dataclass(frozen=True)
class KFront(Task):
    """Letters; at each token from the k-th on, the target is the k-th letter of the row.

    It asks for absolute places: the distance to what is wanted grows with the row.

    Args:
        k: 1 is the first letter.
    """

    trained: int = 32
    tested: tuple[int, ...] = (32, 64, 128, 256)
    k: int = 4

    vocabulary = LETTERS
    chance = 1 / LETTERS
    steps = 1000

    def __post_init__(self):
        super().__post_init__()
        check_whole(k=self.k)
        if self.k > min(self.tested):
            raise ValueError(f"k is {self.k}; the shortest tested row has {min(self.tested)}.")

    @property
    def about(self) -> str:  # type: ignore[override]
        """Which token."""
        return f"Token {self.k} of the row, however far it has gone."

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` letters."""
        tokens = draw(generator, LETTERS, batch, length)
        targets = unscored(tokens)
        targets[:, self.k - 1 :] = tokens[:, self.k - 1 : self.k]
        return Batch(tokens, targets)
