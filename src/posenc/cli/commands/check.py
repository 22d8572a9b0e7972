"""``posenc check``: what is somebody's own implementation, and which known fault has it?"""

import json
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.files import check_figure, write_figure
from posenc.cli.formats import print_json
from posenc.cli.options import Flag, SomeWhole, Words, by_place, named
from posenc.cli.targets import named_by, printed_aside

if TYPE_CHECKING:
    from posenc.audit import Report

KINDS = ("added", "rotary", "bias", "table", "tokens", "pairs")
Kind = Literal["added", "rotary", "bias", "table", "tokens", "pairs"]


@dataclass(frozen=True)
class Check:
    """Checks a class, a function that builds it, or the thing itself: MODULE:FACTORY, where MODULE
    may be a .py file. model:PATH takes a config.json or the folder of a transformers model.

    What is not said is found out: the kind, the order of axes, how to call it. --call is Python
    with subject and any of x, q, k, p (positions), offset, q_len, k_len, scores, length, dim.

    Exit status: 0 nothing wrong, 1 something wrong (or lossy, with --strict), 2 could not check,
    or nothing essential could be asked.
    """

    target: Annotated[str, by_place, named("MODULE:FACTORY"), Doc("What to check.")]
    arguments: Annotated[str, named("JSON"), Doc("Keyword arguments of the factory.")] = "{}"
    kind: Annotated[Optional[Kind], named("|".join(KINDS), "--as"), Doc("What it is.")] = None
    layout: Annotated[
        Optional[str], named("AXES"), Doc("Order of axes: bsd, sbd, bhsd, bshd, sbhd, ….")
    ] = None
    call: Annotated[
        Optional[str], named("PYTHON"), Doc('How to call it, as "subject(q, k, position_ids=p)".')
    ] = None
    dim: Annotated[SomeWhole, Doc("Its width.")] = None
    length: Annotated[
        SomeWhole, Doc("Up to which position precision counts (default: its own, else 8192).")
    ] = None
    strict: Annotated[Flag, Doc("What is lossy counts as what is wrong.")] = False
    ignore: Annotated[Words, named("F"), Doc("Faults that do not count.")] = None
    only: Annotated[Words, named("NAME"), Doc("Questions to ask alone.")] = None
    seq_first: Annotated[Flag, Doc("It takes [seq, batch, dim].")] = False
    format: Annotated[Literal["text", "json", "sarif"], Doc("How to print.")] = "text"
    figure: Annotated[options.File, Doc("Draw errors: .png, .svg or .pdf.")] = None
    dpi: options.Dpi = None

    def run(self) -> int:
        """Checks, prints, and says by the status whether something was found."""
        from posenc.audit.formats import sarif
        from posenc.cli.screen import print_folded

        check_figure(self.figure, self.dpi)
        with printed_aside():  # what the thing prints would stand in the document
            report = self._report()
        if self.format == "text":
            print_folded(str(report).splitlines())
        elif self.format == "json":
            print_json(report.as_dict())
        else:
            module = self.target.rpartition(":")[0]  # the file, for annotations of code scanning
            print_json(sarif(report, module if module.endswith(".py") else None))
        if self.figure is not None and report.errors:
            from posenc.plots.growth import error_curve

            title = "Largest error of cos and sin"
            axes = error_curve({report.subject: report.errors}, title=title)
            write_figure(axes, self.figure, self.dpi, self.format)
        elif self.figure is not None:
            told = "is not drawn: no error over the position was measured"
            print(f"posenc: {self.figure} {told}", file=sys.stderr)
        return report.status

    def _report(self) -> "Report":
        from posenc.audit import CannotCheckError, check

        target, arguments = named_by(self.target), json.loads(self.arguments)
        same = ("kind", "layout", "call", "dim", "length", "strict", "seq_first")
        given: dict[str, Any] = {name: getattr(self, name) for name in same}
        given |= {"ignore": self.ignore or (), "only": self.only or (), "name": self.target}
        with warnings.catch_warnings(action="ignore"):  # those of the thing
            try:
                return check(target, arguments=arguments, **given)
            except CannotCheckError as reason:
                told, _, listing = str(reason).partition("\n")
                raise UserError(f"could not check {self.target}: {told}", listing) from None
