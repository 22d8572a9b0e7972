"""The screen that a command prints on: how wide it is, and whether it shows color and blocks."""

import os
import sys
from typing import IO

from rich.console import Console

# Where nobody looks, lines are as long as they need to be.
UNBOUNDED = 100_000

# What is laid out for a screen is laid out for one of this width in a pipe.
USUAL = 80


class Screen(Console):
    """A console that leaves a broken pipe to the caller."""

    def on_broken_pipe(self) -> None:
        """Raises what rich has caught, where rich would end the process itself."""
        raise

    @property
    def room(self) -> int:
        """Columns to lay out for."""
        return self.width if self.is_terminal else USUAL


def console(stream: IO[str] | None = None) -> Screen:
    """A console on ``stream``: as wide as the terminal, or plain and unbounded in a pipe."""
    stream = sys.stdout if stream is None else stream
    return Screen(
        file=stream,
        width=None if stream and stream.isatty() else UNBOUNDED,
        highlight=False,
        soft_wrap=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def colored(screen: Console) -> bool:
    """Whether color is shown: on a terminal, unless NO_COLOR is set."""
    return screen.is_terminal and not screen.no_color and not os.environ.get("NO_COLOR")


def ascii_only(screen: Console) -> bool:
    """Whether only ASCII is sure to arrive: in a pipe, or where the encoding has no more."""
    return not screen.is_terminal or not screen.encoding.lower().startswith("utf")
