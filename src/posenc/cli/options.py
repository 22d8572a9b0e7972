"""What a command is, and the options that several share; nothing here loads torch.

A command is a frozen dataclass; tyro makes its command line of the fields, and the help says what
stands in ``Doc``. ``X | None``, and a tuple before None, would make tyro load typeguard (.06 s).
"""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from typing_extensions import Doc
from tyro.conf import Positional, arg


class Command:
    """The options of one command; ``posenc.cli.work`` has a function of its name."""

    def run(self) -> int | None:
        """Does it, and gives an exit status where that is not always 0."""
        name = type(self).__name__.lower()
        work = import_module(f"posenc.cli.work.{WORK.get(name, name)}")
        return getattr(work, name)(self)


WORK = {
    **dict.fromkeys(("table", "shift", "distance", "compare"), "numbers"),
    **dict.fromkeys(("heatmap", "curves"), "pictures"),
    **dict.fromkeys(("info", "explore"), "about"),
}
"""Which module of ``posenc.cli.work`` does it, where that has not the name of the command."""

by_place: Any = Positional
"""Says of a field that it is given by its place, not by its name."""


def named(metavar: str, *aliases: str) -> Any:
    """How the help names the value of an option; a default that says nothing is not shown."""

    def hint(default: str) -> str:
        told = default.removesuffix(".0")
        return "" if told in ("", "None", "'{}'") else f"(default: {told})"

    return arg(metavar=metavar, aliases=aliases or None, help_behavior_hint=hint)


Whole = Annotated[int, named("N")]
SomeWhole = Annotated[Optional[int], named("N")]
Words = Union[None, tuple[str, ...]]
Name = Annotated[Optional[str], named("NAME")]
Python = Annotated[Optional[str], named("PYTHON")]
File = Annotated[Optional[Path], named("FILE")]
Output = Annotated[Optional[Path], named("FILE", "-o")]
Flag = Annotated[bool, arg(help_behavior_hint="")]

Width = Annotated[Whole, Doc("Width of a vector.")]
Length = Annotated[Whole, Doc("Number of positions.")]
Start = Annotated[int, named("P"), Doc("First position; may be negative.")]
Expression = Annotated[
    Optional[str],
    named("EXPRESSION"),
    Doc('Any, as "ALiBi(8)" or "Rotary(64, base=5e5)" (default: sinusoidal, of --dim and others).'),
]
Base = Annotated[float, named("X"), Doc("The base of the wavelengths.")]
Convention = Annotated[
    Literal[
        "paper", "concatenated", "tensor2tensor", "timestep", "per_dimension_one_based",
        "per_dimension", "double_exponent",
    ],
    Doc("The sinusoidal convention."),
]  # fmt: skip
Seed = Annotated[Whole, Doc("Seed of the random numbers.")]
DType = Annotated[Literal["float32", "float64", "float16", "bfloat16"], Doc("Of the numbers.")]
Narrow = Literal["bfloat16", "float16", "float32"]
Format = Annotated[Literal["text", "csv", "json"], Doc("How to print.")]
TextOrJson = Annotated[Literal["text", "json"], Doc("How to print.")]
Dpi = Annotated[SomeWhole, Doc("Pixels per inch of a .png (default: 100).")]
