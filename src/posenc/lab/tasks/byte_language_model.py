"""A language model of bytes, on the source text of Python's own library."""

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

from posenc.lab.tasks.base import OF_TEXT, Batch, Task, draw

MOST = 6_000_000  # bytes of text
HELD_OUT = 10  # every tenth file is never trained on


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
        """Rows of ``length`` bytes from anywhere in the text."""
        text = corpus()[self.part]
        start = draw(generator, len(text) - length, batch, 1)
        rows = text[start + torch.arange(length + 1)].long()
        return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        """Bits a byte of each row."""
        nats = functional.cross_entropy(logits.mT, batch.targets, reduction="none")
        return nats.mean(1) / log(2)

    def examined(self) -> "ByteLanguageModel":
        """The same on files that training never sees."""
        return replace(self, part="held out")

    def reported(self, scores: Mapping[int, float], length: int, learned: float) -> float | None:
        """Bits a byte that ``length`` adds; none of a model that only guesses."""
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
