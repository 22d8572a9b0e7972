"""A language model of bytes, on the source text of Python's own library."""

import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from posenc.arguments import check_choice
from posenc.lab.tasks.base import OF_TEXT, Batch, Published, Task, bits, draw

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

    Example:
        >>> task = ByteLanguageModel()
        >>> task.generate(torch.Generator().manual_seed(0), 10, 2).tokens.shape
        torch.Size([2, 10])
        >>> task.reported({64: 3.0, 128: 3.5}, 128, learned=3.0)
        0.5
    """

    trained: int = 64
    tested: tuple[int, ...] = (64, 256, 1024)
    part: Literal["trained", "held out"] = "trained"
    text: str = ""

    about: ClassVar[str] = "The next byte of the source text of Python's own library."
    vocabulary: ClassVar[int] = 256
    measure: ClassVar[str] = "added bits a byte"
    unit: ClassVar[str] = "bits a byte"
    chance: ClassVar[float] = 8.0
    gate: ClassVar[float] = 3.6
    steps: ClassVar[int] = 1500
    lower_is_better: ClassVar[bool] = True
    published: ClassVar[tuple[Published, ...]] = OF_TEXT

    def __post_init__(self):
        super().__post_init__()
        check_choice(("trained", "held out"), part=self.part)
        here = digest()
        if not self.text:
            object.__setattr__(self, "text", here)
        if self.text != here:
            raise ValueError(
                f"text is {self.text}; this machine's Python library has {here}. Run it with the "
                "version of Python with which it was planned, or plan it anew."
            )

    def generate(self, generator: torch.Generator, length: int, batch: int) -> Batch:
        """Rows of ``length`` bytes from anywhere in the text."""
        text = corpus()[self.part]
        start = draw(generator, len(text) - length, batch, 1)
        rows = text[start + torch.arange(length + 1)].long()
        return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())

    def score(self, logits: Tensor, batch: Batch) -> Tensor:
        """Bits a byte of each row."""
        return bits(logits, batch)

    def examined(self) -> "ByteLanguageModel":
        """The same on files that training never sees."""
        return replace(self, part="held out")

    def reported(self, scores: Mapping[int, float], length: int, learned: float) -> float | None:
        """Bits a byte that ``length`` adds to those that training reached.

        None of a model that only guesses at the trained length: it would add none at any.
        """
        return None if learned >= self.chance else scores[length] - learned


@cache
def corpus() -> dict[str, Tensor]:
    """The bytes of both parts, uint8.

    Raises:
        ValueError: Python's library lies here without its source.
    """
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    parts = {"trained": bytearray(), "held out": bytearray()}
    for index, file in enumerate(files):
        part = parts["held out" if index % HELD_OUT == 0 else "trained"]
        if len(part) < MOST:
            part += file.read_bytes()
    if min(map(len, parts.values())) < 100_000:
        raise ValueError(
            f"{sysconfig.get_path('stdlib')} holds less than 100 kB of source; the byte language "
            "model needs a Python whose library is there as text."
        )
    return {name: torch.frombuffer(part, dtype=torch.uint8) for name, part in parts.items()}


@cache
def digest() -> str:
    """What tells this text from that of another Python."""
    parts = corpus()
    return sha256(b"".join(parts[name].numpy().tobytes() for name in sorted(parts))).hexdigest()[
        :12
    ]
