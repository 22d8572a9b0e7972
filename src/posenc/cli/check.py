"""``posenc check``: which known fault has somebody's own implementation?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Check:
    """Find out what is wrong with an implementation, and show the number.

    Exit status: 0 nothing found, 1 faults found, 2 could not check.
    """

    target: Positional[Annotated[str, arg(metavar="MODULE:FACTORY")]]
    """A class, a function that builds it, or the thing itself; MODULE may be a .py file."""
    arguments: Annotated[str, arg(metavar="JSON")] = "{}"
    """Keyword arguments of the factory, as a JSON object."""
    kind: Literal["tokens", "rotary", "bias", "pairs"] | None = None
    """What it is; found out if not given."""
    dim: int | None = None
    """Width of embeddings or of a head, where it cannot be found out."""
    seq_first: bool = False
    """Whether it takes [seq, batch, dim]."""
    format: Literal["text", "json"] = "text"
    """How to print."""
    figure: Path | None = None
    """Where to draw the error over the position: .png or .svg."""

    def run(self) -> int:
        """Checks, prints, and says by the status whether something was found."""
        from posenc.cli.checking import checked, drawn, shown

        report = checked(self)
        if self.figure is not None:
            drawn(report, self.figure)
        shown(report, self.format)
        return 0 if report.ok else 1
