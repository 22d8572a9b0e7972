"""``posenc explain``: where one number of the table comes from."""

from dataclasses import asdict, dataclass
from typing import Annotated, Optional

from posenc.cli import options
from posenc.cli.errors import check_seed
from posenc.cli.options import option


@dataclass(frozen=True)
class Explain:
    """The formula, the numbers put in, and the value, line by line. A number of a bias is that of a
    distance (--position) and a head (--dimension).
    """

    position: Annotated[int, option("The position; of a bias, query - key.", "P")] = 3
    dimension: Annotated[int, option("The column, from 0; of a bias, the head.", "J")] = 2
    encoding: options.Expression = None
    dim: Annotated[Optional[int], option("Width of a vector.", metavar="N", shown="6")] = None
    base: options.Base = None
    convention: options.Convention = None
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints the steps; only an expression needs torch."""
        from posenc.cli.render import formats
        from posenc.cli.render.explanation import explained_sinusoid, show

        if self.encoding is None:
            from posenc.cli.sinusoid import sinusoid

            check_seed(self.seed, "Sinusoidal")
            given = sinusoid(self, dim=6)
            about = given.described()
            found = explained_sinusoid(given, self.position, self.dimension)
        else:
            from posenc.cli.encodings import chosen, described
            from posenc.cli.render.explained import explained

            encoding = chosen(self, dim=6, seed=self.seed)
            about, found = described(encoding), explained(encoding, self.position, self.dimension)
        if self.format == "json":
            about = {**about, "position": self.position, "dimension": self.dimension}
            steps = [asdict(step) for step in found.steps]
            formats.print_json(about, steps=steps, value=found.steps[-1].value)
        elif self.format == "csv":
            rows = ([s.name, s.formula, s.numbers, repr(s.value)] for s in found.steps)
            formats.print_csv(["step", "formula", "numbers", "value"], rows)
        else:
            show(found)
