"""What a hunt has met: how often each backend, refusal and kind of case came up."""

from collections import Counter, defaultdict


class Tally(defaultdict[str, Counter[str]]):
    """Counts by subject; printed at the end, so that nobody takes silence for work."""

    def __init__(self) -> None:
        super().__init__(Counter)

    def __reduce__(self):
        return _filled, (dict(self),)

    def count(self, subject: str, what: str, times: int = 1) -> None:
        """``what`` came up in ``subject``."""
        self[subject][what] += times

    def join(self, other: dict[str, Counter[str]]) -> "Tally":
        """With what another process has met."""
        for subject, found in other.items():
            self[subject].update(found)
        return self

    def __str__(self) -> str:
        told = {subject: found.most_common() for subject, found in sorted(self.items()) if found}
        return "\n".join(
            f"  {subject}: {', '.join(f'{what} {times}' for what, times in found)}"
            for subject, found in told.items()
        )


def _filled(counts: dict[str, Counter[str]]) -> Tally:
    return Tally().join(counts)


TALLY = Tally()
