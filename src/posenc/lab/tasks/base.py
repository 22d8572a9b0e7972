"""What a task is: rows of tokens with targets, how they are scored, what fits, what is published.

A task is a frozen dataclass. Its fields are what a grid may set; its class attributes what it is.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional

from posenc.arguments import check_whole

IGNORED = -100
"""The target of a token that is not scored; ``torch.nn.functional.cross_entropy`` leaves it out."""


@dataclass(frozen=True)
class Batch:
    """Rows of one length, int64 [batch, seq]; positions count from 0 if there are none."""

    tokens: Tensor  # what the model reads
    targets: Tensor  # what it should say at each token; ``IGNORED`` where nothing
    positions: Tensor | None = None  # where the tokens stand, for every encoding alike


@dataclass(frozen=True)
class Published:
    """What a paper or its authors' code reports of a similar task."""

    source: str  # who, when, where in it
    setting: str  # what was trained and tested, and on what
    measure: str
    values: Mapping[str, float]  # by the name of the encoding
    lower_is_better: bool = False


@dataclass(frozen=True)
class Task(abc.ABC):
    """One task; ``generate`` and the class attributes are what a new one needs.

    Args:
        trained: The length that is trained at (up to, if ``shortest`` is a number).
        tested: The lengths that are tested at; the trained one belongs to them.
    """

    trained: int
    tested: tuple[int, ...]

    about: ClassVar[str]  # one sentence
    version: ClassVar[int] = 1  # raised when rows of the same generator change
    vocabulary: ClassVar[int]  # how many tokens there are
    measure: ClassVar[str] = "accuracy"  # what is compared
    unit: ClassVar[str] = ""  # what ``score`` gives, where something else is compared
    chance: ClassVar[float]  # the score of a guess
    gate: ClassVar[float] = 0.95  # the score at the trained length that fits the task
    steps: ClassVar[int] = 1000  # of training, where a grid names none
    shortest: ClassVar[int | None] = None  # the least length in training, if not ``trained``
    is_causal: ClassVar[bool] = True  # whether a token sees only those before it
    lower_is_better: ClassVar[bool] = False
    published: ClassVar[tuple[Published, ...]] = ()

    def __post_init__(self):
        check_whole(self.shortest or 1, trained=self.trained, tested=min(self.tested))
        if self.trained not in self.tested:
            raise ValueError(f"tested must hold the trained length {self.trained}: {self.tested}.")

    @abc.abstractmethod
    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        """``batch`` rows of ``length``, drawn from ``generator`` alone."""

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        """How well each row is answered, [batch], by logits [batch, seq, vocabulary]."""
        scored = batch.targets != IGNORED
        met = ((logits.argmax(-1) == batch.targets) & scored).sum(1)
        return met / scored.sum(1).clamp(min=1)

    def examined(self) -> "Task":
        """The task that scores are taken of; another where training must not see its rows."""
        return self

    def reported(self, scores: Mapping[int, float], length: int, learned: float) -> float | None:
        """What is compared at ``length``, or None where that says nothing of the encoding.

        ``learned`` is the score at the trained length, before any extension.
        """
        return scores[length]

    def tokens(self, length: int) -> int:
        """How many tokens a row of ``length`` has."""
        return length

    @property
    def places(self) -> int:
        """Positions that encodings with a table must hold: 0 … places − 1."""
        return max(self.tokens(length) for length in self.tested)

    def training_length(self, generator: Generator) -> int:
        """The length of the next batch of training."""
        if self.shortest is None:
            return self.trained
        return int(torch.randint(self.shortest, self.trained + 1, (), generator=generator))

    def fits(self, score: float) -> bool:
        """Whether a score at the trained length says that the task was learned there."""
        return score <= self.gate if self.lower_is_better else score >= self.gate


def loss(logits: Tensor, batch: Batch) -> Tensor:
    """Cross entropy of the targets in nats, their mean; NaN where there are none."""
    return functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def draw(generator: Generator, most: int, *shape: int) -> Tensor:
    """Whole numbers 0 … most − 1."""
    return torch.randint(most, shape, generator=generator)


def unscored(tokens: Tensor) -> Tensor:
    """Targets for ``tokens``, none of them scored yet."""
    return torch.full_like(tokens, IGNORED)
