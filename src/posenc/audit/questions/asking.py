"""A question, the subject that it is asked of, and how its answer is judged."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from posenc.audit.adapters.layouts import ONE_ROW
from posenc.audit.questions.faults import fault
from posenc.audit.questions.rows import apart
from posenc.audit.report import Fault, NotAskedError, Verdict

ROUNDING = 1e-5  # what two ways to compute one number in float32 may be apart
ROUNDED = 5 * 2.0**-8  # what rounding to bfloat16 costs, of the size of what is rounded
LARGE = 1024.0  # a size of content that no clamp is meant for: as a power of two changes no digit

Answer = str | Fault | list[Fault]  # what was measured, if all is well; or what was found
# what it is called, what may differ there, and a call: what came, and what should have
Way = tuple[str, float, Callable[[], tuple[Tensor, Tensor]]]
Kind = TypeVar("Kind")


@dataclass
class Inquiry(ABC):
    """A subject whose tokens receive something by their place, and what is data of its place."""

    view: Any  # how the subject is called
    length: int  # up to where precision counts
    errors: dict[int, float] = field(default_factory=dict, kw_only=True)  # by position

    @abstractmethod
    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        """So many tokens to ask with."""

    @abstractmethod
    def called(self, x: Tensor, at: Tensor | None = None, by: Any = None) -> list[Tensor]:
        """What a call makes of content at positions ``[seq]`` or ``[batch, seq]``, side by side."""

    def whole(self, x: Tensor, at: Tensor | None = None, by: Any = None) -> Tensor:
        """What becomes of content, of all sides after each other."""
        return torch.cat(self.called(x, at, by), 1)

    def otherwise(self, run: Any) -> "Inquiry":
        """The same subject, called in another way."""
        return replace(self, view=replace(self.view, run=run))

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
        return 1 if self.view.layout in ("sd", *ONE_ROW) else rows

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


@dataclass(frozen=True)
class Question:
    """One thing to ask."""

    name: str  # words joined by hyphens
    asks: str  # the sentence
    essential: bool  # whether a run without it has learned nothing
    ask: Callable[[Any], Answer]  # from an inquiry to the answer
    after: frozenset[str] = frozenset()  # faults of which its answer would be a consequence

    def verdict(self, inquiry: Any, found: Iterable[str] = ()) -> Verdict:
        """Ask it, unless what was found makes it moot."""
        said = (self.name, self.asks, self.essential)
        if moot := sorted(self.after.intersection(found)):
            return Verdict(*said, "not asked", f"its answer would follow from {', '.join(moot)}")
        try:
            answer = self.ask(inquiry)
        except NotAskedError as reason:
            return Verdict(*said, "not asked", str(reason))
        if isinstance(answer, str):
            return Verdict(*said, "passed", answer)
        again, every = self.reproduction(inquiry), [answer] if isinstance(answer, Fault) else answer
        faults = tuple(replace(each, reproduction=again) for each in every)
        outcome = "failed" if any(each.severity != "note" for each in faults) else "passed"
        return Verdict(*said, outcome, "; ".join(each.said for each in faults), faults)

    def reproduction(self, inquiry: Any) -> str:
        """Python that finds the same again."""
        view = inquiry.view
        given = {"only": [self.name], "length": inquiry.length, **view.given}
        if view.declared:
            given["layout"] = view.layout
        told = ", ".join(f"{name}={value!r}" for name, value in given.items())
        called = f"print(check(subject, {told}))  # called as {view.text}"
        return f"from posenc.audit import check\n{called}"


def question(essential: bool = False, after: Iterable[str] = ()) -> Callable[..., Question]:
    """A function as a question: its name, and the first line of its docstring."""

    def made(function: Callable[[Any], Answer]) -> Question:
        asks = (function.__doc__ or "").strip().splitlines()[0]
        name = function.__name__.replace("_", "-")
        return Question(name, asks, essential, function, frozenset(after))

    return made


def asked(questions: Iterable[Question], inquiry: Any) -> list[Verdict]:
    """Every question in its order, each told what was found before."""
    verdicts: list[Verdict] = []
    for each in questions:
        found = {fault.name for v in verdicts for fault in v.faults if fault.severity != "note"}
        verdicts.append(each.verdict(inquiry, found))
    return verdicts


def needed(thing: Kind | None, why: str) -> Kind:
    """The thing without which a question is not asked; where it is false or None, say why."""
    if not thing:
        raise NotAskedError(why)
    return thing


def compared(ways: Iterable[Way], name: str, words: str) -> Answer:
    """What was asked and how far it differs, or a fault at the first way that differs by more."""
    done, worst = [], 0.0
    for way, allowed, call in ways:
        try:
            made, wanted = call()
        except (NotAskedError, RuntimeError, TypeError, ValueError, IndexError):
            continue  # said aloud, which is no silent difference
        off = apart(made, wanted)
        if off >= allowed:
            return fault(name, f"{way}: up to {off:.3g} {words}", off)
        done, worst = [*done, way], max(worst, off)
    needed(done, "it took them in no other way")
    return f"up to {worst:.1g} apart: {'; '.join(done)}"
