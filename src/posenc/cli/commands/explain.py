"""``posenc explain``: where one number of the table comes from."""

from dataclasses import asdict, dataclass
from typing import Annotated

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import named


@dataclass(frozen=True, kw_only=True)
class Explain(options.Showing):
    """Prints the formula, the numbers put in, and the value, line by line. For a bias, --position
    is the distance and --dimension the head.
    """

    dim: options.Width = 6
    position: Annotated[int, named("P"), Doc("The position; of a bias, query - key.")] = 3
    dimension: Annotated[int, named("J"), Doc("The column, from 0; of a bias, the head.")] = 2

    def run(self) -> None:
        """Prints the steps; only an expression needs torch."""
        from posenc.cli.render import formats

        if self.encoding is None:
            from posenc.cli.explanation import Sinusoid, explained_sinusoid

            given = Sinusoid.of(self.convention, self.dim, self.base)
            about = given.described()
            found = explained_sinusoid(given, self.position, self.dimension)
        else:
            from posenc.cli.encodings import chosen, described
            from posenc.cli.render.explained import explained

            encoding = chosen(self)
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
