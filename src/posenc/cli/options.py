"""Arguments that several commands share, and how each is described."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

Dim = Annotated[int, arg(metavar="N", help="Width of a vector.")]
Length = Annotated[int, arg(metavar="N", help="Number of positions.")]
Start = Annotated[int, arg(metavar="P", help="First position; may be negative.")]
Base = Annotated[
    float, arg(metavar="X", help="The n of the formula: how far apart the wavelengths lie.")
]
Convention = Annotated[
    str,
    arg(
        metavar="NAME",
        help="paper, concatenated, tensor2tensor, timestep, per_dimension_one_based, "
        "per_dimension or double_exponent.",
    ),
]
Seed = Annotated[int, arg(metavar="N", help="Seed of the random numbers.")]
DType = Annotated[
    Literal["float32", "float64", "float16", "bfloat16"], arg(help="dtype of the numbers.")
]
Output = Annotated[Path | None, arg(metavar="FILE")]
Format = Annotated[Literal["text", "csv", "json"], arg(help="How to print.")]
