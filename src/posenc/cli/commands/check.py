"""``posenc check``: what is somebody's own implementation, and which known fault has it?"""

import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional, Union

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option
from posenc.cli.targets import arguments_in, imported

if TYPE_CHECKING:
    from posenc.audit import Report

MODEL = "model:"


@dataclass(frozen=True)
class Check:
    """Exit status: 0 nothing wrong, 1 something wrong (or lossy, with --strict), 2 could not check,
    or nothing essential could be asked.
    """

    target: Annotated[
        str,
        by_place,
        option(
            "A class, a function that builds it, or the thing itself, where MODULE may be a .py "
            "file; or model:PATH, a config.json or the folder of a transformers model.",
            metavar="MODULE:FACTORY",
        ),
    ]
    arguments: Annotated[
        str, option("Keyword arguments of the factory, as a JSON object.", metavar="JSON")
    ] = "{}"
    kind: Annotated[
        Optional[Literal["added", "rotary", "bias", "table", "tokens", "pairs"]],
        option(
            "What it is; found out if not given.",
            "added|rotary|bias|table|tokens|pairs",
            short="--as",
        ),
    ] = None
    layout: Annotated[
        Optional[str],
        option(
            "The order of axes that it must take: bsd, sbd, bhsd, bshd, sbhd, …; measured if not "
            "given.",
            metavar="AXES",
        ),
    ] = None
    call: Annotated[
        Optional[str],
        option(
            "How to call it: Python with subject and any of x, q, k, p (positions), offset, q_len, "
            'k_len, scores, length, dim, as "subject(q, k, position_ids=p)".',
            metavar="PYTHON",
        ),
    ] = None
    dim: Annotated[
        Optional[int],
        option("Width of embeddings or of a head, where it cannot be found out.", metavar="N"),
    ] = None
    length: Annotated[
        Optional[int],
        option(
            "Up to which position precision counts.", metavar="N",
            shown="what it is built for, else 8192",
        ),
    ] = None  # fmt: skip
    strict: Annotated[bool, option("What is lossy counts as what is wrong.")] = False
    ignore: Annotated[
        Union[None, tuple[str, ...]], option("Faults that do not count.", metavar="FAULT")
    ] = None
    only: Annotated[
        Union[None, tuple[str, ...]], option("Questions to ask, and no others.", metavar="QUESTION")
    ] = None
    seq_first: Annotated[bool, option("It takes [seq, batch, dim].")] = False
    format: Annotated[Literal["text", "json", "junit", "sarif"], option("How to print.")] = "text"
    figure: Annotated[
        Optional[Path],
        option("Where to draw the error over the position: .png, .svg or .pdf.", metavar="FILE"),
    ] = None
    dpi: options.Dpi = None

    def run(self) -> int:
        """Checks, prints, and says by the status whether something was found."""
        from posenc.cli.render import check_report, figures

        if self.format == "junit":
            raise UserError("--format junit is gone; pytest --junitxml writes it, by our plugin")
        figures.check_drawn(self.figure, "light", self.dpi)
        if self.figure is not None:
            figures.kind_of(self.figure, self.dpi)  # refused before any work
        with redirect_stdout(sys.stderr):  # what the thing prints would stand in the document
            report = self._report()
        check_report.show(report, self.format, self._path())
        if self.figure is not None:
            self._draw(report, self.figure)
        return report.status

    def _path(self) -> str | None:
        """The file that is checked, for annotations of code scanning."""
        module = self.target.rpartition(":")[0]
        return module if module.endswith(".py") else None

    def _report(self) -> "Report":
        from posenc.audit import CannotCheckError, check

        # A name and no option says what is a model; its file is read, and nothing else run.
        model = self.target.startswith(MODEL)
        target = Path(self.target.removeprefix(MODEL)) if model else imported(self.target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the thing's own; they would stand before the report
            try:
                return check(
                    target,
                    arguments=arguments_in(self.arguments),
                    kind=self.kind,
                    layout=self.layout,
                    call=self.call,
                    dim=self.dim,
                    length=self.length,
                    strict=self.strict,
                    ignore=self.ignore or (),
                    only=self.only or (),
                    seq_first=self.seq_first,
                    name=self.target,
                )
            except CannotCheckError as reason:
                told, _, listing = str(reason).partition("\n")
                raise UserError(f"could not check {self.target}: {told}", listing) from None

    def _draw(self, report: "Report", path: Path) -> None:
        from posenc.cli.render import figures

        if not report.errors:  # the verdict counts all the same, and with it the status
            sys.stderr.write(
                f"posenc: {path} is not drawn: no error over the position was measured\n"
            )
            return
        from posenc.plots.error_curve import error_curve

        axes = error_curve({report.subject: report.errors}, title="Largest error of cos and sin")
        figures.write(axes, path, figures.kind_of(path, self.dpi), self.dpi, self.format)
