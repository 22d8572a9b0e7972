"""Tasks that ask for one token of the row: the last written, the k-th, the one behind a mark."""

from dataclasses import dataclass

import torch
from torch import Generator

from posenc.lab.tasks.base import IGNORED, Batch, Task, draw, unscored

WRITE, READ, IGNORE = 2, 3, 4  # instructions of flip-flop; 0 and 1 are its bits
LETTERS, FILLERS = 8, 8
KEYS, TEXT = 16, 16  # of a passkey
MARK, ASKED = KEYS + TEXT, KEYS + TEXT + 1


@dataclass(frozen=True)
class FlipFlop(Task):
    """Pairs of an instruction and a bit; after "read" comes the bit of the last "write".

    The first pair writes and the last one reads. What comes between is ignored with probability
    ``ignored`` (0.8 in the paper's FFL(0.8)), else written or read as often.

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

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
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


@dataclass(frozen=True)
class KBack(Task):
    """Letters among fillers; at each token the target is the k-th last letter, 1 being the last.

    Fillers do not count, so that the distance in tokens varies and the one in letters does not.

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

    @property
    def about(self) -> str:  # type: ignore[override]
        return f"Letter {self.k} from the end, where only letters count."

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        tokens = draw(generator, LETTERS + FILLERS, batch, length)
        count = (tokens < LETTERS).cumsum(1)  # letters so far
        # Letters in their order, one a column: the n-th of a row stands in column n.
        letters = torch.zeros(batch, length + 1, dtype=torch.long)
        letters.scatter_(1, torch.where(tokens < LETTERS, count, 0), tokens)
        wanted = count - self.k + 1
        targets = letters.gather(1, wanted.clamp(min=0))
        return Batch(tokens, torch.where(wanted >= 1, targets, IGNORED))


@dataclass(frozen=True)
class KFront(Task):
    """Letters; at each token from the k-th on, the target is the k-th letter, 1 being the first.

    It asks for absolute places: the distance to what is wanted grows with the row.
    """

    trained: int = 32
    tested: tuple[int, ...] = (32, 64, 128, 256)
    k: int = 4

    vocabulary = LETTERS
    chance = 1 / LETTERS
    steps = 1000

    @property
    def about(self) -> str:  # type: ignore[override]
        return f"Token {self.k} of the row, however far it has gone."

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        tokens = draw(generator, LETTERS, batch, length)
        targets = unscored(tokens)
        targets[:, self.k - 1 :] = tokens[:, self.k - 1 : self.k]
        return Batch(tokens, targets)


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
    vocabulary = KEYS + TEXT + 2
    chance = 1 / KEYS
    steps = 1500
    shortest = 8

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        tokens, rows = draw(generator, KEYS + TEXT, batch, length), torch.arange(batch)
        place = draw(generator, length - 2, batch)  # of the mark; the key follows it
        key = draw(generator, KEYS, batch)
        tokens[rows, place], tokens[rows, place + 1], tokens[:, -1] = MARK, key, ASKED
        targets = unscored(tokens)
        targets[:, -1] = key
        return Batch(tokens, targets)
