"""What a hunt has met: how often each backend, refusal and kind of case came up."""

from collections import Counter


class Tally:
    """Counts by subject; printed at the end, so that nobody takes silence for work."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def count(self, subject: str, what: str, times: int = 1) -> None:
        """``what`` came up in ``subject``."""
        self.counts.setdefault(subject, Counter())[what] += times

    def join(self, other: "Tally") -> None:
        """What another process has met."""
        for subject, found in other.counts.items():
            self.counts.setdefault(subject, Counter()).update(found)

    def __getitem__(self, subject: str) -> Counter[str]:
        return self.counts.get(subject, Counter())

    def __str__(self) -> str:
        lines = []
        for subject, found in sorted(self.counts.items()):
            told = ", ".join(f"{what} {times}" for what, times in found.most_common())
            lines.append(f"  {subject}: {told}")
        return "\n".join(lines)


TALLY = Tally()
