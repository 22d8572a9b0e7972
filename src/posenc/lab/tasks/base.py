"""What a task is: rows of tokens with targets, how they are scored, what fits, what is published.

A task is a frozen dataclass in a file of its own. Its fields are what a grid may set; its class
attributes are what it is. ``generate`` draws everything from the generator that it is given.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from posenc.arguments import check_whole

IGNORED = -100
"""The target of a token that is not scored; ``torch.nn.functional.cross_entropy`` leaves it out."""


@dataclass(frozen=True)
class Batch:
    """Rows of one length.

    Attributes:
        tokens: What the model reads, int64 [batch, seq].
        targets: What it should say at each token, int64 [batch, seq]; ``IGNORED`` where nothing.
        positions: Where the tokens stand, int64 [batch, seq], for every encoding alike; counted
            from 0 if none.
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
        lower_is_better: Whether small scores are good ones.
        published: What papers report of such tasks.

    Raises:
        ValueError: A length is no whole number from 1 on, or the trained one is not tested.
    """

    trained: int
    tested: tuple[int, ...]

    about: ClassVar[str]
    version: ClassVar[int] = 1
    vocabulary: ClassVar[int]
    measure: ClassVar[str] = "accuracy"
    unit: ClassVar[str] = ""
    chance: ClassVar[float]
    gate: ClassVar[float]
    steps: ClassVar[int] = 1000
    shortest: ClassVar[int | None] = None
    is_causal: ClassVar[bool] = True
    lower_is_better: ClassVar[bool] = False
    published: ClassVar[tuple[Published, ...]] = ()

    def __post_init__(self):
        check_whole(self.shortest or 1, trained=self.trained)
        for length in self.tested:
            check_whole(tested=length)
        if self.trained not in self.tested:
            raise ValueError(
                f"tested is {list(self.tested)}; it must hold the trained length, {self.trained}, "
                "since a score at other lengths says nothing where the trained one fails."
            )

    @abc.abstractmethod
    def generate(self, generator: torch.Generator, length: int, batch: int) -> Batch:
        """``batch`` rows of ``length``, drawn from ``generator`` alone."""

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        """How well each row is answered, [batch]: the share of its targets that are met.

        Args:
            logits: [batch, seq, vocabulary].
            batch: The rows that were answered.
        """
        scored, met = _met(logits, batch)
        return met.sum(1) / scored.sum(1).clamp(min=1)

    def examined(self) -> "Task":
        """The task that scores are taken of; another where training must not see its rows."""
        return self

    def reported(self, scores: Mapping[int, float], length: int, learned: float) -> float | None:
        """What is compared at ``length``: its score, or what that is against ``learned``.

        None where that says nothing of the encoding.

        ``learned`` is the score at the trained length of the model as it was trained: of one that
        was extended since, before that.
        """
        return scores[length]

    def tokens(self, length: int) -> int:
        """How many tokens a row of ``length`` has."""
        return length

    @property
    def places(self) -> int:
        """Positions that encodings with a table must hold: 0 … places − 1."""
        return max(self.tokens(length) for length in self.tested)

    def training_length(self, generator: torch.Generator) -> int:
        """The length of the next batch of training."""
        if self.shortest is None:
            return self.trained
        return int(torch.randint(self.shortest, self.trained + 1, (), generator=generator))

    def fits(self, score: float) -> bool:
        """Whether a score at the trained length says that the task was learned there."""
        return score <= self.gate if self.lower_is_better else score >= self.gate


def ordinal(number: int) -> str:
    """The word for a place, from 1 on.

    Example:
        >>> ordinal(3), ordinal(11), ordinal(22)
        ('third', '11th', '22nd')
    """
    if number <= 5:
        return ("first", "second", "third", "fourth", "fifth")[number - 1]
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return str(number) + {1: "st", 2: "nd", 3: "rd"}.get(last, "th")


def loss(logits: Tensor, batch: Batch) -> Tensor:
    """Cross entropy of the targets in nats, their mean; NaN where there are none.

    Example:
        >>> batch = Batch(torch.tensor([[0, 1]]), torch.tensor([[IGNORED, 1]]))
        >>> round(loss(torch.zeros(1, 2, 4), batch).item(), 4)  # ln 4
        1.3863
    """
    return functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def exact_match(logits: Tensor, batch: Batch) -> Tensor:
    """Whether all targets of a row are met at once, as 0 or 1, [batch]."""
    scored, met = _met(logits, batch)
    return (met == scored).all(1).float()


def bits(logits: Tensor, batch: Batch) -> Tensor:
    """Bits a target of each row, their mean, [batch]."""
    scored = batch.targets != IGNORED
    nats = functional.cross_entropy(logits.mT, batch.targets, reduction="none")
    return nats.sum(1) / scored.sum(1) / log(2)


def draw(generator: torch.Generator, most: int, *shape: int) -> Tensor:
    """Whole numbers 0 … most − 1.

    Example:
        >>> draw(torch.Generator().manual_seed(0), 2, 1, 3).shape
        torch.Size([1, 3])
    """
    return torch.randint(most, shape, generator=generator)


def unscored(tokens: Tensor) -> Tensor:
    """Targets for ``tokens``, none of them scored yet."""
    return torch.full_like(tokens, IGNORED)


def _met(logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    scored = batch.targets != IGNORED
    return scored, (logits.argmax(-1) == batch.targets) & scored
