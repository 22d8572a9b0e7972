"""``posenc check``: which known fault has somebody's own implementation?"""

import importlib
import importlib.util
import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from posenc.cli import options
from posenc.cli.errors import UserError

if TYPE_CHECKING:
    from posenc.audit import Report


@dataclass(frozen=True)
class Check:
    """Find the known faults of somebody's own implementation.

    Exit status: 0 nothing found, 1 faults found, 2 could not check.
    """

    target: Annotated[
        str,
        options.Argument(
            "A class, a function that builds it, or the thing itself; MODULE may be a .py file.",
            metavar="MODULE:FACTORY",
        ),
    ]
    arguments: Annotated[
        str, options.Option("Keyword arguments of the factory, as a JSON object.", metavar="JSON")
    ] = "{}"
    kind: Annotated[
        Literal["tokens", "rotary", "bias", "pairs"] | None,
        options.Option("What it is; found out if not given."),
    ] = None
    dim: Annotated[
        int | None,
        options.Option(
            "Width of embeddings or of a head, where it cannot be found out.", metavar="N"
        ),
    ] = None
    seq_first: Annotated[bool, options.Option("It takes [seq, batch, dim].")] = False
    format: Annotated[Literal["text", "json"], options.Option("How to print.")] = "text"
    figure: Annotated[
        Path | None,
        options.Option(
            "Where to draw the error over the position: .png, .svg or .pdf.", metavar="FILE"
        ),
    ] = None
    dpi: options.Dpi = None

    def run(self) -> int:
        """Checks, prints, and says by the status whether something was found."""
        from posenc.cli.render import check_report

        report = self._report()
        if self.figure is not None:
            self._draw(report, self.figure)
        check_report.show(report, self.format)
        return 0 if report.ok else 1

    def _report(self) -> "Report":
        from posenc.audit import CannotCheckError, check

        factory = _imported(self.target)
        try:
            arguments = json.loads(self.arguments)
        except json.JSONDecodeError as error:
            raise UserError(f"--arguments is no JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise UserError('--arguments must be a JSON object, such as {"dim": 64}')
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the thing's own; they would stand before the report
            try:
                return check(
                    factory,
                    arguments=arguments,
                    kind=self.kind,
                    dim=self.dim,
                    seq_first=self.seq_first,
                    name=self.target,
                )
            except CannotCheckError as reason:
                raise UserError(f"could not check {self.target}: {reason}") from None

    def _draw(self, report: "Report", path: Path) -> None:
        from posenc.cli.render import figures

        kind = figures.kind_of(path, self.dpi)
        if not report.errors:
            raise UserError(f"no error over the position was measured; leave --figure {path} out")
        from posenc.plots.error_curve import error_curve

        axes = error_curve({report.subject: report.errors}, title="Largest error of cos and sin")
        figures.write(axes, path, kind, self.dpi)


def _imported(target: str) -> Any:
    module, colon, name = target.rpartition(":")
    if not colon or not module or not name:
        raise UserError(
            f"{target!r} names nothing to check; give MODULE:FACTORY or FILE.py:FACTORY"
        )
    sys.path.insert(0, "")
    try:
        loaded = (
            _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{module} could not be imported: {type(error).__name__}: {error}"
        ) from None
    finally:
        sys.path.remove("")
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise UserError(f"{module} has no {name}; check the name after the colon")
        loaded = getattr(loaded, part)
    return loaded


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"{path} is no file; give a module's name or the path of a .py file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return module
