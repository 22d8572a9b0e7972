"""A subject whose tokens receive something by their place, as the generic questions see it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.layouts import ONE_ROW
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError

ROUNDING = 1e-5
"""What two ways to compute one number in float32 may be apart."""

ROUNDED = 5 * 2.0**-8
"""What rounding to bfloat16 costs, of the size of what is rounded."""

LARGE = 1024.0
"""A size of content that no clamp is meant for: a power of two, so that no digit changes."""

REFUSALS = (NotAskedError, RuntimeError, TypeError, ValueError, IndexError)
"""What a way is refused with, aloud, which is no silent difference."""

Way = tuple[str, float, Callable[[], tuple[Tensor, Tensor]]]
"""What it is called, what may differ there, and a call: what came, and what should have."""


def listed(line: Tensor) -> str:
    """Positions in words."""
    return ", ".join(f"{p:,}" for p in line.tolist())


def compared(ways: Iterable[Way], name: str, words: str) -> Answer:
    """What was asked and how far it differs, or a fault at the first way that differs by more."""
    asked, worst = [], 0.0
    for way, allowed, call in ways:
        try:
            made, wanted = call()
        except REFUSALS:
            continue
        off = apart(made, wanted)
        if off >= allowed:
            return fault(name, f"{way}: up to {off:.3g} {words}", off)
        asked, worst = [*asked, way], max(worst, off)
    if not asked:
        raise NotAskedError("it took them in no other way")
    return f"up to {worst:.1g} apart: {'; '.join(asked)}"


@dataclass
class Inquiry(ABC):
    """A subject, its calls, and what is data of its place."""

    view: Any  # how the subject is called
    length: int  # up to where precision counts
    errors: dict[int, float] = field(default_factory=dict, kw_only=True)  # by position

    @abstractmethod
    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        """So many tokens to ask with."""

    @abstractmethod
    def called(self, run: Any, x: Tensor, at: Tensor | None = None, by: Any = None) -> list[Tensor]:
        """What a call makes of content at positions ``[seq]`` or ``[batch, seq]``, side by side."""

    def whole(self, x: Tensor, at: Tensor | None = None, by: Any = None, run: Any = None) -> Tensor:
        """What becomes of content, of all sides after each other."""
        return torch.cat(self.called(run or self.view.run, x, at, by), 1)

    @property
    def learns(self) -> bool:
        """Whether it has parameters that shape what tokens receive: more than a factor."""
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(p.numel() > 1 for p in thing.parameters())

    def drawn(self, x: Tensor) -> Tensor:
        """Random content of the same shape."""
        return torch.randn(x.shape, generator=torch.Generator().manual_seed(11))

    def learned(self, thing: Any) -> dict[str, nn.Parameter]:
        """What of it is trained, and needs a gradient."""
        named = thing.named_parameters() if isinstance(thing, nn.Module) else ()
        return {name: p for name, p in named if p.requires_grad}

    @property
    def dense(self) -> float:
        """What two ways to compute one number may be apart."""
        return ROUNDING

    def batch(self, rows: int) -> int:
        """As many rows of a batch up to a number as its order of axes has."""
        return 1 if getattr(self.view, "layout", None) in ("sd", *ONE_ROW) else rows

    def most(self, count: int) -> int:
        """As many tokens up to a number as it takes."""
        return count

    @property
    def longest(self) -> int:
        """As many tokens as a call before others has."""
        return self.most(min(2 * self.length, 16_384))

    def own_ways(self, x: Tensor, plain: Tensor) -> Iterable[Way]:
        """Other ways to give content, of this place alone."""
        return ()
