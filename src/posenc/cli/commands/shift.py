"""``posenc shift``: the linear map that moves an encoding by an offset, and what it misses."""

from dataclasses import dataclass
from typing import Annotated

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import check_least
from posenc.cli.options import named


@dataclass(frozen=True, kw_only=True)
class Shift(options.Showing):
    """The map takes each row p of a table to row p + offset. For a rotary encoding it maps keys; if
    queries have another map, text and JSON show it too. A bias has no map: the output says how
    much it changes when query and key both move.
    """

    offset: Annotated[int, named("K"), Doc("How far, in positions; may be negative.")] = 10
    length: Annotated[options.Whole, Doc("Number of positions to look at.")] = 256

    def run(self) -> None:
        """Prints."""
        from posenc.cli.render.shift import show

        check_least(1, length=self.length)
        show(self)
