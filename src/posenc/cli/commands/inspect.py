"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from posenc.inspection.model import SetupNumbers


@dataclass(frozen=True)
class Inspect:
    """Part by part and layer by layer, for any scheme: what it is, in words, numbers and the
    expression that builds it. Of rotary encodings: frequencies, rotated channels, pairing, factors,
    wavelengths against trained and target length, and what is lost there by implementations with
    floating positions. Weights beside the file (model.safetensors) confirm its widths.
    """

    config: Annotated[
        Path,
        by_place,
        option(
            "The config.json of a Hugging Face model, or the folder that it is in.",
            metavar="CONFIG.json",
        ),
    ]
    other: Annotated[
        Optional[Path], by_place, option("Another one, to compare with.", metavar="OTHER.json")
    ] = None
    length: Annotated[
        Optional[int], option("Target length, in tokens.", metavar="N", shown="its longest")
    ] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"],
        option("In which other implementations hold positions and frequencies."),
    ] = "bfloat16"
    figure: Annotated[
        Optional[Path],
        option("Draw wavelengths, or biases, into this file: .png, .svg or .pdf.", metavar="FILE"),
    ] = None
    format: Annotated[Literal["text", "json"], option("How to print.")] = "text"

    def run(self) -> None:
        """Inspects."""
        from posenc.cli.render import inspection_report

        if self.length is not None and self.length < 1:
            raise UserError(f"--length is {self.length}; it must be at least 1")
        paths = [path for path in (self.config, self.other) if path is not None]
        kind = self._kind()
        models = [self._read(path) for path in paths]
        self._check_heeded(paths, models)
        if self.format == "json":
            inspection_report.print_json(paths, models)
        elif len(models) == 1:
            inspection_report.show_one(paths[0], models[0], self._confirmed(paths[0], models[0]))
        else:
            inspection_report.show_two(paths, *models)
        if self.figure is not None:
            from posenc.cli.render import figures, inspection_figure

            axes = inspection_figure.drawn(paths, models)
            figures.write(axes, self.figure, kind, None, self.format)  # type: ignore[arg-type]

    def _check_heeded(self, paths: list[Path], models: list["SetupNumbers"]) -> None:
        """Refuse what would change nothing."""
        layers = [layer for model in models for part in model.parts for layer in part.layers]
        rotary = [layer.rotary for layer in layers if layer.rotary is not None]
        told = " and ".join(map(str, paths))
        for name, given in {"--length": self.length, "--dtype": self._dtype}.items():
            if given is not None and not rotary:
                raise UserError(
                    f"{name} is of rotary encodings along a sequence, and {told} has none; leave "
                    "it out"
                )
        if self._dtype and not any(numbers.precision for numbers in rotary):
            raise UserError(
                f"--dtype says what is lost up to a length, and {told} gives none; give --length"
            )

    @property
    def _dtype(self) -> str | None:
        """The dtype where it is not the usual one."""
        return self.dtype if self.dtype != type(self).dtype else None

    def _kind(self) -> str | None:
        if self.figure is None:
            return None
        from posenc.cli.render import figures

        return figures.kind_of(self.figure, None)

    def _confirmed(self, path: Path, model: "SetupNumbers") -> list[str]:
        from posenc.inspection.weights import confirmed, header_beside

        try:
            header = header_beside(path if path.is_dir() else path.parent)
        except ValueError as error:
            raise UserError(str(error)) from None
        return confirmed(model, header) if header else []

    def _read(self, path: Path) -> "SetupNumbers":
        import torch

        from posenc.inspection.model import inspect_model

        if path.is_dir():
            path = path / "config.json"
        try:
            return inspect_model(path, length=self.length, dtype=getattr(torch, self.dtype))
        except ValueError as error:
            said = str(error)
            raise UserError(said if str(path) in said else f"{path}: {said}") from None
