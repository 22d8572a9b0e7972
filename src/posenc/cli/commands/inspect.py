"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_heeded, check_least
from posenc.cli.files import config_in
from posenc.cli.options import File, SomeWhole, by_place, named

if TYPE_CHECKING:
    from posenc.inspection.model import SetupNumbers


@dataclass(frozen=True)
class Inspect:
    """Prints, for each part and layer, the encoding in words and the expression that builds it. For
    rotary encodings: frequencies, rotated channels, pairing, factors, wavelengths, and the errors
    of implementations with floating positions. A model.safetensors beside the file confirms widths.
    """

    config: Annotated[Path, by_place, named("FILE"), Doc("A config.json, or its folder.")]
    other: Annotated[Optional[Path], by_place, named("OTHER"), Doc("One to compare with.")] = None
    length: Annotated[SomeWhole, Doc("Target length (default: its longest).")] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"], Doc("Of other implementations' positions.")
    ] = "bfloat16"
    figure: Annotated[File, Doc("Draw wavelengths, or a bias.")] = None
    format: options.TextOrJson = "text"

    def run(self) -> None:
        """Inspects."""
        from posenc.cli.render import figures, formats, inspection

        check_least(1, length=self.length)
        figures.check_figure(self.figure)
        paths = [path for path in (self.config, self.other) if path is not None]
        models = [self._read(config_in(path)) for path in paths]
        held = [layer.rotary for m in models for part in m.parts for layer in part.layers]
        turns, measured = any(held), any(each and each.precision for each in held)
        check_heeded(
            self,
            length=not turns and "but of rotary encodings along a sequence",
            dtype=not measured and "but of rotary encodings up to a length",
        )
        if self.format == "json":
            told = list(map(inspection.as_dict, paths, models))
            formats.print_json(told[0] if len(told) == 1 else told)
        elif len(models) == 1:
            inspection.show_one(paths[0], models[0], self._confirmed(models[0]))
        else:
            inspection.show_two(paths, *models)
        if self.figure is not None:
            from posenc.cli.render.inspection_figure import drawn

            figures.write(drawn(paths, models), self.figure, form=self.format)

    def _confirmed(self, model: "SetupNumbers") -> list[str]:
        from posenc.inspection.weights import confirmed, header_beside

        header = header_beside(config_in(self.config).parent)
        return confirmed(model, header) if header else []

    def _read(self, path: Path) -> "SetupNumbers":
        import torch

        from posenc.inspection.model import inspect_model

        try:
            return inspect_model(path, length=self.length, dtype=getattr(torch, self.dtype))
        except ValueError as error:
            told = str(error)
            raise UserError(told if str(path) in told else f"{path}: {told}") from None
