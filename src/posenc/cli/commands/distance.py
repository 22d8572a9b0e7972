"""``posenc distance``: what an encoding makes of the distance between two positions."""

from dataclasses import asdict, dataclass
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
        from posenc.cli.encodings import chosen, described
        from posenc.cli.render import formats
        from posenc.cli.render.distance import profile_of, show

        check_least(2, length=self.length)
        encoding = chosen(self)
        found = profile_of(encoding, self.length)
        if self.format == "text":
            show(found, encoding)
        elif self.format == "csv":
            rows = zip(found.distances, *found.lines.values(), strict=True)
            formats.print_csv(["distance", *found.lines], rows)
        else:
            closest = {} if found.closest is None else {"closest": asdict(found.closest)}
            about = {**described(encoding), "length": self.length}
            formats.print_json(about, distances=list(found.distances), **found.lines, **closest)
