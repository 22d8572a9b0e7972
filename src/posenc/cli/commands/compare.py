"""``posenc compare``: conventions beside each other, by what can be computed of them."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import option

# Positions that are timed to tell how long all will take, and seconds that need no word before.
SAMPLE, PATIENCE = 1500, 5.0

# Rows that are looked at beyond the last position.
MARGIN = 16


@dataclass(frozen=True)
class Compare:
    """Bounds, distances, shifts, norms, and what a narrow dtype leaves. In conventions whose sines
    and cosines come in pairs, rows differ by their offset alone; in the others every position is
    compared with every other, and how long that takes is said before.
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
        from posenc.cli.io.progress import Steps

        if self.length > 4 * SAMPLE:
            self._announce(taken)
        with Steps("comparing", taken) as steps:
            return {name: self._properties(name, self.length) for name in steps.each()}

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

    def _announce(self, names: list[str]) -> None:
        """Says how long it will take, where that is long, from a part of the positions."""
        from posenc import Sinusoidal
        from posenc.inspection.similarity import closest_pair

        seconds = 0.0
        for name in names:
            encoding = Sinusoidal(self.dim, self.base, name)
            whole = _timed(lambda name=name: self._properties(name, SAMPLE))
            if encoding.keeps_shift:
                seconds += whole * self.length / SAMPLE
                continue
            # Every pair of positions: a n + b n², told from two samples.
            once, twice = (
                _timed(lambda encoding=encoding, n=n: closest_pair(encoding, n))
                for n in (SAMPLE, 2 * SAMPLE)
            )
            square = max(0.0, twice - 2 * once) / 2
            ratio = self.length / SAMPLE
            seconds += max(whole - square, 0.0) * ratio + square * ratio**2
        if seconds > PATIENCE:
            sys.stderr.write(
                f"posenc: comparing {self.length:,} positions of {self.dim} dimensions: about "
                f"{seconds:.0f} s\n"
            )


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


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
