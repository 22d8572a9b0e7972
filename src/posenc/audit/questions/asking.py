"""What a question is, and how it is asked."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from posenc.audit.questions.remedies import LOSSY, NOTES, REMEDIES
from posenc.audit.report import Fault, NotAskedError, Severity, Verdict

Answer = str | Fault | list[Fault]
"""What was measured, if all is well; or what was found."""


@dataclass(frozen=True)
class Question:
    """One thing to ask."""

    name: str  # words joined by hyphens
    asks: str  # the sentence
    essential: bool  # whether a run without it has learned nothing
    ask: Callable[[Any], Answer]  # from an inquiry to the answer
    after: frozenset[str] = frozenset()  # faults of which its answer would be a consequence

    def of(self, name: str, asks: str, *after: str) -> "Question":
        """The same question in the words of a place."""
        return replace(self, name=name, asks=asks, after=self.after | set(after))

    def verdict(self, inquiry: Any, found: Container[str] = ()) -> Verdict:
        """Ask it, unless what was found makes it moot."""
        said = (self.name, self.asks, self.essential)
        if moot := sorted(name for name in self.after if name in found):
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
        if getattr(view, "declared", False):
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


def fault(
    name: str,
    said: str,
    number: float = 1.0,
    *,
    expected: float = 0.0,
    severity: Severity | None = None,
) -> Fault:
    """A fault, with how much it counts and what to do about it."""
    usual: Severity = "note" if name in NOTES else "lossy" if name in LOSSY else "wrong"
    return Fault(name, severity or usual, said, float(number), expected, REMEDIES.get(name, ""))


# What makes other questions moot.

NO_ORDER = ("batch-axis-encoded", "head-axis-encoded", "encodes-nothing", "sides-mixed")
NO_LENGTH = (*NO_ORDER, "depends-on-length")
NO_STATE = ("state-between-calls", "history-changes-result")
NO_NUMBER = (*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits")
NO_PLACE = (
    *NO_NUMBER, "positions-shared", "clamped", "wrapped", "stops", "off-by-one-after-cache",
    "decoding-differs-from-prefill", "wrong-exponent",
)  # fmt: skip


def asked(questions: Iterable[Question], inquiry: Any) -> list[Verdict]:
    """Every question in its order, each told what was found before."""
    verdicts: list[Verdict] = []
    for each in questions:
        found = {fault.name for v in verdicts for fault in v.faults if fault.severity != "note"}
        verdicts.append(each.verdict(inquiry, found))
    return verdicts
