"""``posenc explain``: where one number of the table comes from."""

from dataclasses import asdict, dataclass
from typing import Annotated, Optional

from posenc.cli import options
from posenc.cli.errors import check_heeded
from posenc.cli.options import option


@dataclass(frozen=True, kw_only=True)
class Explain(options.Showing):
    """Prints the formula, the numbers put in, and the value, line by line. For a bias, --position
    is the distance and --dimension the head.
    """

    dim: Annotated[Optional[int], option("Width of a vector.", "N", shown="6")] = None
    position: Annotated[int, option("The position; of a bias, query - key.", "P")] = 3
    dimension: Annotated[int, option("The column, from 0; of a bias, the head.", "J")] = 2

    def run(self) -> None:
        """Prints the steps; only an expression needs torch."""
        from posenc.cli.render import formats

        if self.encoding is None:
            from posenc.cli.explanation import explained_sinusoid, sinusoid

            check_heeded(self, seed="of an encoding that learns nothing")
            given = sinusoid(self, 6)
            about = given.described()
            found = explained_sinusoid(given, self.position, self.dimension)
        else:
            from posenc.cli.encodings import chosen, described
            from posenc.cli.render.explained import explained

            encoding = chosen(self, 6)
            about, found = described(encoding), explained(encoding, self.position, self.dimension)
        if self.format == "json":
            about = {**about, "position": self.position, "dimension": self.dimension}
            steps = [asdict(step) for step in found.steps]
            formats.print_json(about, steps=steps, value=found.steps[-1].value)
        elif self.format == "csv":
            rows = ([s.name, s.formula, s.numbers, repr(s.value)] for s in found.steps)
            formats.print_csv(["step", "formula", "numbers", "value"], rows)
        else:
            found.show()
