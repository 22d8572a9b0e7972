"""What a check finds, in plain words and with the number that shows it."""

from dataclasses import dataclass, field
from typing import Any


class CannotCheckError(Exception):
    """Nothing could be learned: the thing cannot be built, or is called in no way known here."""


class NotApplicableError(Exception):
    """One question cannot be asked of this thing; its text says why."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        name: A short name that stays the same, for scripts.
        said: A sentence for people, with the number in it.
        number: The number that shows it.
        expected: What it would be without the fault.
    """

    name: str
    said: str
    number: float
    expected: float = 0.0


@dataclass
class Report:
    """All that was found.

    Attributes:
        subject: What was checked.
        kind: ``"tokens"``, ``"rotary"``, ``"bias"`` or ``"encoding"`` (one of our interfaces).
        understood: How it was called, and what it was taken for.
        faults: What is wrong.
        passed: Questions with a good answer.
        notes: Questions that could not be asked, with the reason.
        errors: Largest error of the table against exact values, by position.
    """

    subject: str
    kind: str
    understood: str
    faults: list[Fault] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    errors: dict[int, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "subject": self.subject,
            "kind": self.kind,
            "understood": self.understood,
            "ok": self.ok,
            "faults": [vars(fault) for fault in self.faults],
            "passed": self.passed,
            "not asked": self.notes,
            "error by position": {str(position): far for position, far in self.errors.items()},
        }

    def __str__(self) -> str:
        lines = [f"{self.subject}: {self.understood}"]
        lines += [f"  FAULT {fault.name}: {fault.said}" for fault in self.faults]
        if not self.faults:
            lines.append("  no fault found")
        if self.passed:
            lines.append(f"  in order: {', '.join(self.passed)}")
        lines += [f"  not asked, {name}: {why}" for name, why in self.notes.items()]
        if self.errors:
            far = ", ".join(f"{error:.1e} at {p:,}" for p, error in self.errors.items())
            lines.append(f"  largest error of cos and sin: {far}")
        return "\n".join(lines)
