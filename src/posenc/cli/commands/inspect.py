"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_least
from posenc.cli.files import config_in
from posenc.cli.options import File, SomeWhole, by_place, named


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
        import torch

        from posenc.cli.render import figures, formats, inspection
        from posenc.inspection.model import inspect_model
        from posenc.inspection.weights import confirmed, header_beside

        check_least(1, length=self.length)
        figures.check_figure(self.figure)
        paths, models = [path for path in (self.config, self.other) if path is not None], []
        for path in map(config_in, paths):
            try:
                dtype = getattr(torch, self.dtype)
                models.append(inspect_model(path, length=self.length, dtype=dtype))
            except ValueError as error:
                told = str(error)
                raise UserError(told if str(path) in told else f"{path}: {told}") from None
        if self.format == "json":
            told = list(map(inspection.as_dict, paths, models))
            formats.print_json(told[0] if len(told) == 1 else told)
        elif len(models) == 1:
            header = header_beside(config_in(self.config).parent)
            inspection.show_one(paths[0], models[0], confirmed(models[0], header) if header else [])
        else:
            inspection.show_two(paths, *models)
        if self.figure is not None:
            from posenc.cli.render.inspection_figure import drawn

            figures.write(drawn(paths, models), self.figure, form=self.format)
