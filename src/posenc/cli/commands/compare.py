"""``posenc compare``: conventions beside each other, by what can be computed of them."""

import sys
from dataclasses import asdict, dataclass

from posenc.cli import options
from posenc.cli.errors import UserError, check_least


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
        from posenc.cli.render import formats
        from posenc.cli.render.screen import console
        from posenc.encodings.tokens.conventions import CONVENTIONS
        from posenc.inspection.conventions import properties_of

        check_least(11, length=self.length)
        found, without, refusal = {}, [], ""
        for name in CONVENTIONS:
            try:
                encoding = Sinusoidal(self.dim, self.base, name)
            except ValueError as error:
                without.append(name)
                refusal = str(error)
            else:
                found[name] = asdict(properties_of(encoding, self.length))
        if not found:
            raise UserError(f"--dim {self.dim} --base {self.base:g}: no convention can; {refusal}")
        if self.format == "json":
            formats.print_json(formats.asked(self), conventions=found, not_at_dim=without)
            return
        if self.format == "csv":
            rows = ([name, *row.values()] for name, row in found.items())
            formats.print_csv(["convention", *next(iter(found.values()))], rows)
        else:
            screen = console()
            for name, row in found.items():
                screen.print(
                    f"{name}: {CONVENTIONS[name].formula}\n"
                    f"  values up to {row['largest']:.4g}; closest pair {row['closest']:.4g} "
                    f"apart; norms spread {row['norm_spread']:.2g}\n"
                    f"  shift by 10 misses {row['shift_residual']:.2g}; "
                    f"{row['distinct_in_bfloat16']} of {self.length} distinct in bfloat16"
                )
        if without:
            file = sys.stdout if self.format == "text" else sys.stderr
            print(f"not at dim {self.dim}: {', '.join(without)}", file=file)
