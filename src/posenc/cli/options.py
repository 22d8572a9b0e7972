"""What a field of a command's dataclass says about itself, and the options that several share.

A command is a frozen dataclass. Its annotations give the types, its defaults the defaults, and
``Annotated[..., Option(...)]`` the words of the help. Nothing heavy is imported.
"""

from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True)
class Option:
    """A field that is given as ``--name``.

    Attributes:
        about: What it means, for the help.
        metavar: What its value is called there.
        shown: How the default is told, where it follows from other things.
        short: A second, short name, as ``-o``.
        most: The largest whole number that makes sense; larger ones are mistyped.
    """

    about: str
    metavar: str = ""
    shown: str = ""
    short: str = ""
    most: int | None = None


WIDEST = 1 << 20
"""The largest width of a vector: hundreds of times those in use, and still worked out at once."""


@dataclass(frozen=True)
class Argument:
    """A field that is given by its place; it is required unless it has a default."""

    about: str
    metavar: str


Length = Annotated[int, Option("Number of positions.", "N")]
Start = Annotated[int, Option("First position; may be negative.", "P")]
Expression = Annotated[
    str | None,
    Option(
        'Any encoding with its arguments, as "Rotary(64, base=5e5)" or "ALiBi(8)"; schedules nest. '
        "Without it, the sinusoidal one that --dim, --base and --convention choose.",
        "EXPRESSION",
    ),
]
Base = Annotated[
    float | None,
    Option("The n of the formula: how far apart the wavelengths lie.", "X", shown="10000"),
]
Convention = Annotated[
    str | None,
    Option(
        "paper, concatenated, tensor2tensor, timestep, per_dimension_one_based, per_dimension or "
        "double_exponent.",
        "NAME",
        shown="paper",
    ),
]
Seed = Annotated[int, Option("Seed of the random numbers.", "N")]
DType = Annotated[
    Literal["float32", "float64", "float16", "bfloat16"], Option("dtype of the numbers.")
]
Format = Annotated[Literal["text", "csv", "json"], Option("How to print.")]
Theme = Annotated[Literal["light", "dark"], Option("Ground of the figure.")]
Dpi = Annotated[
    int | None,
    Option("Pixels per inch of a .png; cells stay whole pixels.", "N", shown="100"),
]
