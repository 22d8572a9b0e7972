"""Language models: of a small language with short reach, and of bytes."""

import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import log
from pathlib import Path
from typing import Literal

import torch
from torch import Generator, Tensor
from torch.nn import functional

from posenc.lab.tasks.base import Batch, Published, Task, draw, unscored

TOKENS = 16
NEAR = (5, 14, 1, 8, 11, 2, 15, 4, 12, 7, 0, 10, 3, 13, 6, 9)  # of the last token
FAR = (3, 9, 12, 6, 0, 15, 10, 5, 1, 14, 8, 2, 13, 11, 4, 7)  # of the third last

MOST = 6_000_000  # bytes of text
HELD_OUT = 10  # every tenth file is never trained on

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
        near, far = torch.tensor(NEAR), torch.tensor(FAR)
        row = list(draw(generator, TOKENS, 3, batch))
        while len(row) <= length:
            row.append((near[row[-1]] + far[row[-3]]) % TOKENS)
        rows = torch.stack(row[: length + 1], 1)
        tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].clone()
        targets[:, :2] = unscored(targets[:, :2])
        return Batch(tokens, targets)


@dataclass(frozen=True)
class ByteLanguageModel(Task):
    """The next byte of the modules of Python's standard library; every tenth file is held out.

    Scores are bits a byte over whole rows. What is compared is what a longer row *adds* to the
    bits at the trained length: nothing, where an encoding carries on.

    Args:
        part: Which files rows are cut from; scores are always of those that are held out.
        text: Digest of the text, which differs with the version of Python; that of this machine
            if not given. A run asks for the text that it was planned with.
    """

    trained: int = 64
    tested: tuple[int, ...] = (64, 256, 1024)
    part: Literal["trained", "held out"] = "trained"
    text: str = ""

    about = "The next byte of the source text of Python's own library."
    vocabulary = 256
    measure = "added bits a byte"
    unit = "bits a byte"
    chance = 8.0
    gate = 3.6
    steps = 1500
    lower_is_better = True
    published = OF_TEXT

    def __post_init__(self):
        super().__post_init__()
        here = digest()
        if (self.text or here) != here:
            raise ValueError(f"text is {self.text}; this machine's Python library has {here}.")
        object.__setattr__(self, "text", here)

    def generate(self, generator: Generator, length: int, batch: int) -> Batch:
        text = corpus()[self.part]
        start = draw(generator, len(text) - length, batch, 1)
        rows = text[start + torch.arange(length + 1)].long()
        return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        nats = functional.cross_entropy(logits.mT, batch.targets, reduction="none")
        return nats.mean(1) / log(2)

    def examined(self) -> "ByteLanguageModel":
        return replace(self, part="held out")

    def reported(self, scores: Mapping[int, float], length: int, learned: float) -> float | None:
        return None if learned >= self.chance else scores[length] - learned


@cache
def corpus() -> dict[str, Tensor]:
    """The bytes of both parts, uint8."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    parts = {"trained": bytearray(), "held out": bytearray()}
    for index, file in enumerate(files):
        part = parts["held out" if index % HELD_OUT == 0 else "trained"]
        if len(part) < MOST:
            part += file.read_bytes()
    if min(map(len, parts.values())) < 100_000:
        raise ValueError("the byte language model needs the source of Python's standard library.")
    return {name: torch.frombuffer(part, dtype=torch.uint8) for name, part in parts.items()}


@cache
def digest() -> str:
    """What tells this text from that of another Python."""
    text = b"".join(part.numpy().tobytes() for _, part in sorted(corpus().items()))
    return sha256(text).hexdigest()[:12]
