"""``posenc explain``: one number; without an expression, torch and rich stay out."""

from dataclasses import asdict
from typing import Any

from posenc.cli.explanation import Sinusoid, explained_sinusoid, short
from posenc.cli.formats import print_csv, print_json
from posenc.encodings.tokens.conventions import CONVENTIONS


def explain(asked: Any) -> None:
    """Prints all steps to one number."""
    position, dimension = asked.position, asked.dimension
    if asked.encoding is None:
        given = Sinusoid(CONVENTIONS[asked.convention], asked.dim, asked.base)
        about, found = given.described(), explained_sinusoid(given, position, dimension)
    else:
        from posenc.cli.encodings import chosen, described
        from posenc.cli.work.explained import explained

        encoding = chosen(asked)
        about, found = described(encoding), explained(encoding, position, dimension)
    steps = found.steps
    if asked.format == "json":
        about |= {"position": position, "dimension": dimension}
        print_json(about, steps=list(map(asdict, steps)), value=steps[-1].value)
    elif asked.format == "csv":
        rows = ([s.name, s.formula, s.numbers, repr(s.value)] for s in steps)
        print_csv(["step", "formula", "numbers", "value"], rows)
    else:
        rows = [(s.name, s.formula, s.numbers, f"= {short(s.value)}") for s in steps]
        rows = [("step", "formula", "numbers put in", "value"), *rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        print(found.title, found.asked, "", *lines, *filter(None, [found.note]), sep="\n")
