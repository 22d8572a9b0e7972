"""``posenc compare``: conventions beside each other, by what can be computed of them."""

import sys
from dataclasses import asdict, dataclass

from posenc.cli import options
from posenc.cli.errors import UserError


@dataclass(frozen=True)
class Compare:
    """Prints bounds, distances, shifts, norms, and how many rows stay distinct in bfloat16."""

    length: options.Length = 512
    dim: options.Width = 64
    base: options.Base = 10_000.0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc import Sinusoidal
        from posenc.cli.formats import asked, print_csv, print_json
        from posenc.cli.screen import console, grid
        from posenc.encodings.tokens.conventions import CONVENTIONS
        from posenc.inspection.conventions import properties_of

        found, refused = {}, {}
        for name in CONVENTIONS:
            try:
                encoding = Sinusoidal(self.dim, self.base, name)
            except ValueError as error:
                refused[name] = str(error)
            else:
                found[name] = asdict(properties_of(encoding, self.length))
        if not found:
            told = "; ".join(dict.fromkeys(refused.values()))
            raise UserError(f"--dim {self.dim} --base {self.base:g}: no convention can; {told}")
        if self.format == "json":
            return print_json(asked(self), conventions=found, not_at_dim=list(refused))
        headers = ["convention", *next(iter(found.values()))]
        if self.format == "csv":
            print_csv(headers, ([name, *row.values()] for name, row in found.items()))
        else:
            rows = [[name, *(f"{x:.3g}" for x in row.values())] for name, row in found.items()]
            grid([header.replace("_", "\n") for header in headers], rows, left=[0])
            formulas = (f"{name}: {CONVENTIONS[name].formula}" for name in found)
            console().print("", *formulas, sep="\n")
        if refused:
            file = sys.stdout if self.format == "text" else sys.stderr
            print(f"not at dim {self.dim}: {', '.join(refused)}", file=file)
