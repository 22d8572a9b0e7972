"""How an option is told, and those that several commands share; nothing here loads torch.

A command is a frozen dataclass with ``run``; tyro makes its command line of the fields.
``Optional`` stands where ``X | None`` would, for which tyro loads typeguard (.06 s).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from tyro.conf import Positional, arg

by_place: Any = Positional
"""Says of a field that it is given by its place, not by its name."""


def option(about: str, metavar: str | None = None, *, shown: str = "", short: str = "") -> Any:
    """What the help says of an option: ``shown`` is its default where another is worked out."""

    def hint(default: str) -> str:
        said = shown or default
        return f"(default: {said})" if said not in ("", "None", "False", "'{}'") else ""

    aliases = [short] if short else None
    return arg(help=about, metavar=metavar, aliases=aliases, help_behavior_hint=hint)


Length = Annotated[int, option("Number of positions.", "N")]
Start = Annotated[int, option("First position; may be negative.", "P")]
Expression = Annotated[
    Optional[str],
    option(
        'Any encoding with its arguments, as "Rotary(64, base=5e5)" or "ALiBi(8)"; schedules nest. '
        "Without it, the sinusoidal one that --dim, --base and --convention choose.",
        "EXPRESSION",
    ),
]
Base = Annotated[
    Optional[float],
    option("The base of the wavelengths.", "X", shown="10000"),
]
Convention = Annotated[
    Optional[str],
    option(
        "paper, concatenated, tensor2tensor, timestep, per_dimension_one_based, per_dimension or "
        "double_exponent.",
        "NAME",
        shown="paper",
    ),
]
Seed = Annotated[int, option("Seed of the random numbers.", "N")]
DType = Annotated[
    Literal["float32", "float64", "float16", "bfloat16"], option("The dtype of the numbers.")
]
Format = Annotated[Literal["text", "csv", "json"], option("How to print.")]
TextOrJson = Annotated[Literal["text", "json"], option("How to print.")]
Figure = Annotated[
    Optional[Path], option("Where to write: .png, .svg or .pdf.", "FILE", short="-o")
]
Theme = Annotated[Literal["light", "dark"], option("Background of the figure.")]
Dpi = Annotated[
    Optional[int],
    option("Pixels per inch of a .png; cells stay whole pixels.", "N", shown="100"),
]


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What the commands that show one encoding share; each says how wide a vector is by itself."""

    encoding: Expression = None
    dim: Annotated[Optional[int], option("Width of a vector.", "N")] = None
    base: Base = None
    convention: Convention = None
    seed: Seed = 0
    format: Format = "text"


@dataclass(frozen=True, kw_only=True)
class Drawing(Showing):
    """What those have in common that draw a figure, too."""

    output: Figure = None
    theme: Theme = "light"
    dpi: Dpi = None
