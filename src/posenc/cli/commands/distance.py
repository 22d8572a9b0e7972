"""``posenc distance``: what an encoding makes of the distance between two positions."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Optional

from posenc.cli import options
from posenc.cli.options import option


@dataclass(frozen=True)
class Distance:
    """Of an encoding of tokens the dot product of two rows, and the closest pair of positions; of a
    rotary one the score of a query and a key that are equal; of a bias its number in every head.
    Where more than the distance counts, the key stands at 0.
    """

    length: Annotated[int, option("Number of distances, from 0 on.", metavar="N")] = 60
    encoding: options.Expression = None
    dim: Annotated[
        Optional[int],
        option("Width of a vector.", metavar="N", shown="128"),
    ] = None
    base: options.Base = None
    convention: options.Convention = None
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.encodings import chosen, described
        from posenc.cli.errors import UserError, check_range
        from posenc.cli.render import formats
        from posenc.cli.render.distance import profile_of, show

        if self.length < 2:
            raise UserError(f"--length is {self.length}; it must be at least 2")
        check_range(0, self.length)
        encoding = chosen(self, dim=128, seed=self.seed)
        found = profile_of(encoding, self.length)
        if self.format == "text":
            show(found, encoding)
        elif self.format == "csv":
            rows = zip(found.distances, *found.lines.values(), strict=True)
            formats.print_csv(["distance", *found.lines], rows)
        else:
            closest: dict[str, Any] = {}
            if found.closest is not None:
                closest["closest"] = asdict(found.closest)
            about = {**described(encoding), "length": self.length}
            formats.print_json(about, distances=list(found.distances), **found.lines, **closest)
