"""``posenc explain``: one number; without an expression, torch and rich stay out."""

from types import SimpleNamespace
from typing import Any

from posenc.cli.explanation import described_sinusoid, explained_sinusoid, short
from posenc.cli.printing import print_csv, print_json
from posenc.encodings.tokens.conventions import CONVENTIONS


def explain(asked: Any) -> None:
    position, dimension = asked.position, asked.dimension
    if asked.encoding is None:
        convention = CONVENTIONS[asked.convention]
        given = SimpleNamespace(convention=convention, dim=asked.dim, base=asked.base, offset=0)
        about, found = described_sinusoid(given), explained_sinusoid(given, position, dimension)
    else:
        from posenc.cli.encodings import chosen, described
        from posenc.cli.work.explained import explained

        encoding = chosen(asked)
        about, found = described(encoding), explained(encoding, position, dimension)
    steps = found.steps
    if asked.format == "json":
        about |= {"position": position, "dimension": dimension}
        print_json(about, steps=[step._asdict() for step in steps], value=steps[-1].value)
    elif asked.format == "csv":
        print_csv(["step", "formula", "numbers", "value"], steps)
    else:
        rows = [("step", "formula", "numbers put in", "value")]
        rows += [(*words, f"= {short(value)}") for *words, value in steps]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        print(found.title, found.asked, "", *lines, *filter(None, [found.note]), sep="\n")
