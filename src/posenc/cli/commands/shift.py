"""``posenc shift``: the linear map that moves an encoding by an offset, and what it misses."""

from dataclasses import dataclass
from typing import Annotated, Any

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_least
from posenc.cli.options import named


@dataclass(frozen=True, kw_only=True)
class Shift(options.Showing):
    """The map takes each row p of a table to row p + offset. For a rotary encoding it maps keys; if
    queries have another map, text and JSON show it too. A bias has no map: the output says how
    much it changes when query and key both move.
    """

    offset: Annotated[int, named("K"), Doc("How far, in positions; may be negative.")] = 10
    length: Annotated[options.Whole, Doc("Number of positions to look at.")] = 256

    def run(self) -> None:
        """Prints."""
        from posenc.cli.encodings import chosen, described, key_heads, name_of
        from posenc.cli.render import formats
        from posenc.cli.render.shift import as_dict, bias_change, shift_of, show
        from posenc.cli.rows import rows_of
        from posenc.encodings.base import QueryKeyEncoding
        from posenc.encodings.bias import ScoreBias

        check_least(1, length=self.length)
        encoding: Any = chosen(self)
        rows_of(encoding)  # refuses what has no rows along one line
        about = {**described(encoding), "offset": self.offset, "length": self.length}
        if isinstance(encoding, ScoreBias):
            if self.format == "csv":
                raise UserError("a bias has no map to print as csv; take --format json or text")
            change = bias_change(encoding, self.offset, self.length)
            if self.format == "json":
                formats.print_json(about, largest_change=change)
            else:
                print(
                    f"{name_of(encoding)} adds to scores and has no map. Query and key both moved "
                    f"by {self.offset}: the bias changes by {change:.2g} at most."
                )
            return
        inside = isinstance(encoding, QueryKeyEncoding)
        found = shift_of(encoding, self.offset, self.length)
        queries = shift_of(encoding, self.offset, self.length, "queries") if inside else None
        if self.format == "csv":
            names = [f"from_{j}" for j in range(len(found.matrix))]
            formats.print_csv(names, found.matrix.tolist())
        elif self.format == "json":
            beside = {} if queries is None else {"of": "keys", "queries": as_dict(queries)}
            formats.print_json(about, **as_dict(found), **beside)
        else:
            show(found, self.length, queries)
            if inside and key_heads(encoding) > 1:
                print(f"This is head 0 of {key_heads(encoding)}; each has a map of its own.")
