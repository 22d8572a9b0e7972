"""``posenc compare``: conventions beside each other, by what can be computed of them."""

import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import option

# Rows that are looked at beyond the last position.
MARGIN = 16


@dataclass(frozen=True)
class Compare:
    """Bounds, distances, shifts, norms, and what a narrow dtype leaves. In conventions whose sines
    and cosines come in pairs, rows differ by their offset alone; in the others every position is
    compared with every other.
    """

    length: options.Length = 512
    dim: Annotated[int, option("Width of a vector.", metavar="N")] = 64
    base: Annotated[float, option("The n of the formula.", metavar="X")] = 10_000.0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.errors import check_memory, check_range
        from posenc.cli.render import formats

        if self.length < 11:
            raise UserError(f"--length is {self.length}; it must be at least 11")
        check_range(0, self.length)
        check_memory(3 * self.length * max(1, self.dim))
        taken, without = self._taken()
        found = self._found(taken)
        names = list(next(iter(found.values())))
        left_out = f"not at dim {self.dim}: {', '.join(without)}"
        if self.format == "json":
            formats.print_json(formats.asked(self), conventions=found, not_at_dim=without)
        elif self.format == "csv":
            if without:
                sys.stderr.write(f"posenc: {left_out}\n")
            rows = ([name, *row.values()] for name, row in found.items())
            formats.print_csv(["convention", *names], rows)
        else:
            _show(found, self.length)
            if without:
                print(f"{left_out.capitalize()}.")

    def _found(self, taken: list[str]) -> dict[str, dict[str, Any]]:
        """The properties of every convention that is taken."""
        from rich.console import Console
        from rich.progress import track

        quiet = not sys.stderr.isatty()
        told = track(
            taken, "comparing", console=Console(stderr=True), transient=True, disable=quiet
        )
        return {name: self._properties(name, self.length) for name in told}

    def _taken(self) -> tuple[list[str], list[str]]:
        """The conventions that have this width, and those that do not."""
        from posenc import Sinusoidal
        from posenc.encodings.tokens.conventions import CONVENTIONS

        taken, without, refusal = [], [], ""
        for name in CONVENTIONS:
            try:
                Sinusoidal(self.dim, self.base, name)
                taken.append(name)
            except ValueError as error:
                without.append(name)
                refusal = str(error)
        if not taken:
            raise UserError(f"--dim {self.dim} --base {self.base:g}: no convention can; {refusal}")
        return taken, without

    def _properties(self, name: str, length: int) -> dict[str, Any]:
        from posenc.cli.rows import KeptSinusoidal
        from posenc.inspection.conventions import properties_of

        # A shift looks some rows further.
        encoding = KeptSinusoidal(length + MARGIN, self.dim, self.base, name)
        return asdict(properties_of(encoding, length))


def _show(found: dict[str, dict[str, Any]], length: int) -> None:
    from posenc.cli.render.screen import console
    from posenc.encodings.tokens.conventions import CONVENTIONS

    screen = console()
    for name, row in found.items():
        screen.print(f"{name}: {CONVENTIONS[name].formula}")
        screen.print(
            f"  values up to {row['largest']:.4g}; closest pair {row['closest']:.4g} apart; "
            f"norms spread {row['norm_spread']:.2g}"
        )
        screen.print(
            f"  shift by 10 misses {row['shift_residual']:.2g}; "
            f"{row['distinct_in_bfloat16']} of {length} distinct in bfloat16"
        )
