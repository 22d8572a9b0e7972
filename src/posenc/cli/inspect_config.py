"""``posenc inspect``: what a model does with positions, read from its config.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Inspect:
    """Say what a model's config.json does with positions; of two files, what differs.

    Layer by layer: frequencies, rotated channels, pairing, factors, wavelengths against trained and
    target length, and what is lost there by implementations with floating positions.
    """

    config: Positional[Annotated[Path, arg(metavar="CONFIG.json")]]
    """The config.json of a Hugging Face model, or the folder that it is in."""
    other: Annotated[Positional[Path | None], arg(metavar="[CONFIG.json]")] = None
    """Another one, to compare with."""
    length: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: its longest)")] = (
        None
    )
    """Target length, in tokens."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """In which other implementations hold positions and frequencies."""
    format: Annotated[Literal["text", "json"], arg(help="How to print.")] = "text"

    def run(self) -> None:
        """Inspects."""
        from posenc.cli.inspecting import inspect_files

        inspect_files(self)
