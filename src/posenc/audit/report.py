"""What a check finds, in plain words and with the number that shows it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any, Literal, get_args

Severity = Literal["wrong", "lossy", "note"]
Outcome = Literal["passed", "failed", "not asked"]

LEVELS = {"wrong": "error", "lossy": "warning", "note": "note"}  # what SARIF calls each severity


class CannotCheckError(Exception):
    """Nothing could be learned: the thing cannot be built, or is called in no way known here."""


class AddsNothingError(CannotCheckError):
    """It gives back what it is given: a table of zeros tells of no position yet."""


class NearlyError(CannotCheckError):
    """It is no form that is known, and its text says what keeps it from one."""


class NotAskedError(Exception):
    """One question cannot be asked of this thing; its text says why."""


class CallFailedError(NotAskedError):
    """The thing refused a call; its text is its own error."""


class FewerRowsError(CallFailedError):
    """The thing answered, but not for every token."""


class OtherResultError(CallFailedError):
    """The thing answered with something that no other shape of content would change."""


class UnfitError(OtherResultError):
    """The thing answered otherwise than any form does, and its text says why, for its author."""


@dataclass(frozen=True)
class Fault:
    """One thing that is found."""

    name: str  # a short name that stays the same, for scripts: words joined by hyphens
    severity: Severity
    said: str  # a sentence for people, with the number in it
    number: float  # the number that shows it
    expected: float = 0.0  # what it would be without the fault
    remedy: str = ""  # what to do
    reproduction: str = ""  # the smallest one, some lines of Python; ``subject`` is the thing


@dataclass(frozen=True)
class Verdict:
    """A question with its outcome."""

    question: str  # its name
    asks: str  # the sentence that it asks
    essential: bool  # whether a run without it has learned nothing
    outcome: Outcome
    told: str  # what was measured, or why it could not be
    faults: tuple[Fault, ...] = ()  # what was found


@dataclass
class Report:
    """All that was found."""

    subject: str  # what was checked
    kind: str  # added, rotary, bias, encoding (one of our interfaces) or model
    understood: str  # how it was called
    identity: str = ""  # what it is; empty where nothing fits
    verdicts: list[Verdict] = field(default_factory=list)  # one for each question
    # the largest error of what it gives against exact values, by position
    errors: dict[int, float] = field(default_factory=dict)
    length: int = 0  # up to where precision was judged
    ignored: frozenset[str] = frozenset()  # names of faults that do not count
    strict: bool = False  # whether what is lossy counts

    @property
    def found(self) -> list[Fault]:
        """Everything that was found and not ignored, notes too; the worst first."""
        every = [fault for verdict in self.verdicts for fault in verdict.faults]
        counted = [fault for fault in every if fault.name not in self.ignored]
        return sorted(counted, key=lambda fault: get_args(Severity).index(fault.severity))

    @property
    def left_out(self) -> list[str]:
        """Names of what was found and is ignored."""
        names = {fault.name for verdict in self.verdicts for fault in verdict.faults}
        return sorted(names & self.ignored)

    @property
    def faults(self) -> list[Fault]:
        """What is wrong or lossy."""
        return [fault for fault in self.found if fault.severity != "note"]

    @property
    def notes(self) -> list[Fault]:
        """What is worth knowing and no fault."""
        return [fault for fault in self.found if fault.severity == "note"]

    @property
    def passed(self) -> list[Verdict]:
        """What was asked and measured, and is right."""
        return [verdict for verdict in self.verdicts if verdict.outcome == "passed"]

    @property
    def not_asked(self) -> list[Verdict]:
        """What could not be asked."""
        return [verdict for verdict in self.verdicts if verdict.outcome == "not asked"]

    @property
    def status(self) -> int:
        """0, 1 where something counts, 2 where nothing essential could be asked."""
        counting = ("wrong", "lossy") if self.strict else ("wrong",)
        if any(fault.severity in counting for fault in self.found):
            return 1
        learned = any(v.essential and v.outcome != "not asked" for v in self.verdicts)
        return 0 if learned else 2

    @property
    def ok(self) -> bool:
        """Whether the status is 0."""
        return self.status == 0

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON, which has no infinity: numbers that are none are None."""
        names = ("subject", "kind", "understood", "identity", "status", "ok", "length")
        return {
            **{name: getattr(self, name) for name in names},
            "faults": [_plain(asdict(fault)) for fault in self.faults],
            "notes": [_plain(asdict(fault)) for fault in self.notes],
            "ignored": self.left_out,
            "passed": [{"question": v.question, "measured": v.told} for v in self.passed],
            "not_asked": [{"question": v.question, "why": v.told} for v in self.not_asked],
            "errors": _plain({str(position): error for position, error in self.errors.items()}),
        }

    def __str__(self) -> str:
        lines = [f"{self.subject}: {self.understood}"]
        lines += [f"  is {self.identity}"] if self.identity else []
        for fault in self.found:
            lines.append(f"  {fault.severity.upper()} {fault.name}: {fault.said}")
            lines += [f"    do: {fault.remedy}"] if fault.remedy else []
            if fault.severity != "note":
                lines += [f"    >>> {line}" for line in fault.reproduction.splitlines()]
        lines += [f"  passed: {v.question} ({v.told})" for v in self.passed]
        lines += [f"  not asked: {v.question} ({v.told})" for v in self.not_asked]
        return "\n".join([*lines, self.conclusion])

    @property
    def conclusion(self) -> str:
        """One line: what counts, what does not, how much was asked."""
        asked = len(self.verdicts) - len(self.not_asked)
        counts = f"{asked} of {len(self.verdicts)} questions asked"
        if self.left_out:
            counts += f"; found and ignored: {', '.join(self.left_out)}"
        if self.status == 2:
            return f"Nothing was learned: no essential question could be asked ({counts})."
        parts = []
        for severity in ("wrong", "lossy"):
            names = [fault.name for fault in self.found if fault.severity == severity]
            parts += [f"{len(names)} {severity}: {', '.join(names)}"] if names else []
        return f"{'; '.join(parts) or 'Nothing wrong was found'} ({counts})."


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The same with None for what is no finite number."""
    return {n: None if isinstance(v, float) and not isfinite(v) else v for n, v in values.items()}


def merged(name: str, reports: Sequence[Report]) -> Report:
    """Several reports of parts as one of the whole; each verdict says of which part it is."""
    told = f"has {len(reports)} positional part{'s' * (len(reports) > 1)} that can be asked"
    identity = "; ".join(f"{r.subject}: {r.identity}" for r in reports if r.identity)
    verdicts = [
        replace(v, question=f"{r.subject}: {v.question}") for r in reports for v in r.verdicts
    ]
    positions = sorted({position for r in reports for position in r.errors})
    errors = {p: max(r.errors.get(p, 0.0) for r in reports) for p in positions}
    length = max(r.length for r in reports)
    return Report(name, "model", told, identity, verdicts, errors, length)


def sarif(report: Report, path: str | None = None) -> dict[str, Any]:
    """SARIF 2.1.0: one result a fault, at a file where one is known."""
    place = {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}
    results = [
        {
            "ruleId": fault.name,
            "level": LEVELS[fault.severity],
            "message": {"text": f"{report.subject}: {fault.said}"},
            "locations": [] if path is None else [{"physicalLocation": place}],
        }
        for fault in report.found
    ]
    helps = {fault.name: fault.remedy or fault.said for fault in report.found}
    rules = [{"id": name, "help": {"text": text}} for name, text in helps.items()]
    driver = {"name": "posenc check", "rules": rules}
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
