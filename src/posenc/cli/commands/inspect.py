"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from posenc.cli import options
from posenc.cli.errors import UserError, check_least
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

    config: Annotated[Path, by_place, option("The config.json of a model, or its folder.", "FILE")]
    other: Annotated[Optional[Path], by_place, option("Another, to compare with.", "OTHER")] = None
    length: Annotated[Optional[int], option("Target length.", "N", shown="its longest")] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"],
        option("In which other implementations hold positions and frequencies."),
    ] = "bfloat16"
    figure: Annotated[Optional[Path], option("Draw wavelengths, or a bias.", "FILE")] = None
    format: options.TextOrJson = "text"

    def run(self) -> None:
        """Inspects."""
        from posenc.cli.render import figures, inspection

        check_least(1, length=self.length)
        kind = None if self.figure is None else figures.kind_of(self.figure, None)
        paths = [path for path in (self.config, self.other) if path is not None]
        models = [self._read(path) for path in paths]
        rotary = [
            layer.rotary
            for model in models
            for part in model.parts
            for layer in part.layers
            if layer.rotary is not None
        ]
        if self.length is not None and not rotary:
            raise UserError("--length is of rotary encodings along a sequence; leave it out")
        if self.dtype != "bfloat16" and not any(numbers.precision for numbers in rotary):
            raise UserError("--dtype says what rotary encodings lose up to a length; give --length")
        if self.format == "json":
            inspection.print_json(paths, models)
        elif len(models) == 1:
            inspection.show_one(paths[0], models[0], self._confirmed(models[0]))
        else:
            inspection.show_two(paths, *models)
        if self.figure is not None and kind is not None:
            from posenc.cli.render.inspection_figure import drawn

            figures.write(drawn(paths, models), self.figure, kind, None, self.format)

    def _confirmed(self, model: "SetupNumbers") -> list[str]:
        from posenc.inspection.weights import confirmed, header_beside

        header = header_beside(self.config if self.config.is_dir() else self.config.parent)
        return confirmed(model, header) if header else []

    def _read(self, path: Path) -> "SetupNumbers":
        import torch

        from posenc.inspection.model import inspect_model

        path = path / "config.json" if path.is_dir() else path
        try:
            return inspect_model(path, length=self.length, dtype=getattr(torch, self.dtype))
        except ValueError as error:
            told = str(error)
            raise UserError(told if str(path) in told else f"{path}: {told}") from None
