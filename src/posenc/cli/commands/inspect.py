"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from posenc.cli import options
from posenc.cli.errors import UserError

if TYPE_CHECKING:
    from posenc.inspection.rotary import ModelNumbers


@dataclass(frozen=True)
class Inspect:
    """Say what a config.json does with positions; of two, what differs.

    Layer by layer: frequencies, rotated channels, pairing, factors, wavelengths against trained and
    target length, and what is lost there by implementations with floating positions.
    """

    config: Annotated[
        Path,
        options.Argument(
            "The config.json of a Hugging Face model, or the folder that it is in.",
            metavar="CONFIG.json",
        ),
    ]
    other: Annotated[
        Path | None, options.Argument("Another one, to compare with.", metavar="OTHER.json")
    ] = None
    length: Annotated[
        int | None, options.Option("Target length, in tokens.", metavar="N", shown="its longest")
    ] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"],
        options.Option("In which other implementations hold positions and frequencies."),
    ] = "bfloat16"
    format: Annotated[Literal["text", "json"], options.Option("How to print.")] = "text"

    def run(self) -> None:
        """Inspects."""
        from posenc.cli.render import inspection_report

        if self.length is not None and self.length < 1:
            raise UserError(f"--length is {self.length}; it must be at least 1")
        paths = [path for path in (self.config, self.other) if path is not None]
        models = [self._read(path) for path in paths]
        if self.format == "json":
            inspection_report.print_json(paths, models)
        elif len(models) == 1:
            inspection_report.show_one(paths[0], models[0])
        else:
            inspection_report.show_two(paths, *models)

    def _read(self, path: Path) -> "ModelNumbers":
        import torch

        from posenc.inspection.rotary import inspect_config

        if path.is_dir():
            path = path / "config.json"
        try:
            return inspect_config(path, length=self.length, dtype=getattr(torch, self.dtype))
        except ValueError as error:
            said = str(error)
            raise UserError(said if str(path) in said else f"{path}: {said}") from None
