"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
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
        from posenc.cli.shown.inspection import inspect

        inspect(self)
