"""Curves in one line of characters."""

from collections.abc import Sequence

from posenc.cli.render.screen import Screen, ascii_only

BARS = "▁▂▃▄▅▆▇█"
STEPS = "_.-~^"


def marks_for(screen: Screen) -> str:
    """The marks that a sparkline on this screen is made of."""
    return STEPS if ascii_only(screen) else BARS


def sparkline(values: Sequence[float], marks: str = BARS) -> str:
    """A mark for each value: the lowest at −1, the highest at +1.

    Example:
        >>> sparkline([-1.0, 0.0, 1.0], "abc")
        'abc'
    """
    return "".join(
        marks[min(len(marks) - 1, max(0, int((v + 1) / 2 * len(marks))))] for v in values
    )
