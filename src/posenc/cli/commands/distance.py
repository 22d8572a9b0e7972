"""``posenc distance``: what an encoding makes of the distance between two positions."""

from dataclasses import dataclass
from typing import Annotated

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import check_least


@dataclass(frozen=True, kw_only=True)
class Distance(options.Showing):
    """Token encodings: the dot product of two rows, and the closest pair of positions. Rotary
    encodings: the score of an equal query and key. Biases: the number that each head adds. If more
    than the distance matters, the key is at 0.
    """

    dim: options.Width = 128
    length: Annotated[options.Whole, Doc("Number of distances, from 0 on.")] = 60

    def run(self) -> None:
        """Prints."""
        from posenc.cli.render.distance import show

        check_least(2, length=self.length)
        show(self)
