"""What a task is: rows of tokens with targets, how they are scored, what fits, what is published.

A task is a frozen dataclass in a file of its own. Its fields are what a grid may set; its class
attributes are what it is.
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
    """Rows of one length, all int64 [batch, seq].

    Attributes:
        tokens: What the model reads.
        targets: What it should say at each token; ``IGNORED`` where nothing.
        positions: Where the tokens stand, for every encoding alike; counted from 0 if none.
    """

    tokens: Tensor
    targets: Tensor
    positions: Tensor | None = None


@dataclass(frozen=True)
class Published:
    """What a paper or its authors' code reports of a similar task.

    Attributes:
        source: Who, when, where in it.
        setting: What was trained and tested, and on what.
        measure: What the numbers are.
        values: By the name of the encoding.
        lower_is_better: Whether small numbers are good ones.
    """

    source: str
    setting: str
    measure: str
    values: Mapping[str, float]
    lower_is_better: bool = False


OF_TEXT = (
    Published(
        "Press et al. 2022, ALiBi (arXiv:2108.12409), WikiText-103",
        "trained at 512 tokens, tested at 3072",
        "perplexity",
        {"Sinusoidal": 360.0, "T5": 30.8, "ALiBi": 18.3},
        lower_is_better=True,
    ),
    Published(
        "Chi et al. 2022, KERPLE (arXiv:2205.09921), table 3",
        "trained at 512 tokens, tested at 16384",
        "perplexity",
        {"KERPLE": 21.4, "ALiBi": 22.5, "T5": 31.4, "Rotary": 269.0, "Sinusoidal": 30046.0},
        lower_is_better=True,
    ),
)
"""Perplexities of models of real text, beside the tasks that stand for one."""


@dataclass(frozen=True)
class Task(abc.ABC):
    """One task; ``generate`` and the class attributes are what a new one needs.

    Args:
        trained: The length that is trained at (up to, if ``shortest`` is a number).
        tested: The lengths that are tested at; the trained one belongs to them.

    Attributes:
        about: One sentence.
        version: Raised when rows of the same generator change, so that runs are made anew.
        vocabulary: How many tokens there are.
        measure: What is compared, in words.
        unit: What ``score`` gives, where something else is compared.
        chance: The score of one who guesses.
        gate: The score at the trained length from which a model has fitted the task.
        steps: Training steps, where a grid names none.
        shortest: The least length in training; all of it is at ``trained`` if none.
        is_causal: Whether a token sees only those before it.
        is_exact: Whether a row scores 1 where all of it is right and else 0.
        lower_is_better: Whether small scores are good ones.
        published: What papers report of such tasks.
    """

    trained: int
    tested: tuple[int, ...]

    about: ClassVar[str]
    version: ClassVar[int] = 1
    vocabulary: ClassVar[int]
    measure: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = ""
    chance: ClassVar[float]
    gate: ClassVar[float] = 0.95
    steps: ClassVar[int] = 1000
    shortest: ClassVar[int | None] = None
    is_causal: ClassVar[bool] = True
    is_exact: ClassVar[bool] = False
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
        return (met == scored.sum(1)).float() if self.is_exact else met / scored.sum(1).clamp(min=1)

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
    """Cross entropy of the targets in nats, their mean; NaN where there are none.

    Example:
        >>> batch = Batch(torch.tensor([[0, 1]]), torch.tensor([[IGNORED, 1]]))
        >>> round(loss(torch.zeros(1, 2, 4), batch).item(), 4)  # ln 4
        1.3863
    """
    return functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def draw(generator: Generator, most: int, *shape: int) -> Tensor:
    """Whole numbers 0 … most − 1."""
    return torch.randint(most, shape, generator=generator)


def unscored(tokens: Tensor) -> Tensor:
    """Targets for ``tokens``, none of them scored yet."""
    return torch.full_like(tokens, IGNORED)
