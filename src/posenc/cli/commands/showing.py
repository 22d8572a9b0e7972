"""The commands that show encodings: what each takes."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Union

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import Command, named


@dataclass(frozen=True, kw_only=True)
class Showing(Command):
    """What they share; each has its own usual width."""

    encoding: options.Expression = None
    dim: options.Width = 4
    base: options.Base = 10_000.0
    convention: options.Convention = "paper"
    seed: options.Seed = 0
    format: options.Format = "text"


@dataclass(frozen=True, kw_only=True)
class Drawing(Showing):
    """What those share that draw a figure, too."""

    output: Annotated[options.Output, Doc("Where to write: .png, .svg or .pdf.")] = None
    theme: Annotated[Literal["light", "dark"], Doc("Background of the figure.")] = "light"
    dpi: options.Dpi = None


@dataclass(frozen=True, kw_only=True)
class Table(Showing):
    """A bias has one row a distance (query - key) and one column a head. If a bias depends on
    positions too, the key is at 0 for distances from 0 on, and the query for the others.
    """

    length: options.Length = 10
    start: options.Start = 0
    dtype: options.DType = "float32"


@dataclass(frozen=True, kw_only=True)
class Explain(Showing):
    """Prints the formula, the numbers put in, and the value, line by line. For a bias, --position
    is the distance and --dimension the head.
    """

    dim: options.Width = 6
    position: Annotated[int, named("P"), Doc("The position; of a bias, query - key.")] = 3
    dimension: Annotated[int, named("J"), Doc("The column, from 0; of a bias, the head.")] = 2


@dataclass(frozen=True, kw_only=True)
class Heatmap(Drawing):
    """Colors diverge around zero and end at -1 and 1, or at the largest number if it is above 1 or
    below .5. A bias is drawn query by key for one head. A figure of more positions than pixels
    draws means of several positions, and says so. The terminal shows the cells that fit, from
    --start and --first-dimension on.
    """

    dim: options.Width = 128
    length: options.Length = 50
    start: options.Start = 0
    first_dimension: Annotated[int, named("J"), Doc("First one that the terminal shows.")] = 0
    head: Annotated[int, named("H"), Doc("Which head of a bias is drawn.")] = 0


@dataclass(frozen=True, kw_only=True)
class Curves(Drawing):
    """A bias is drawn over the distance (query - key), one curve a head, on both sides of 0."""

    dim: options.Width = 20
    length: options.Length = 100
    start: Annotated[Optional[int], named("P"), Doc("First position (default: 0).")] = None
    dimensions: Annotated[
        Union[None, tuple[int, ...]], named("J"), Doc("Which columns (default: some of them).")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Shift(Showing):
    """The map takes each row p of a table to row p + offset. For a rotary encoding it maps keys; if
    queries have another map, text and JSON show it too. A bias has no map: the output says how
    much it changes when query and key both move.
    """

    offset: Annotated[int, named("K"), Doc("How far, in positions; may be negative.")] = 10
    length: Annotated[options.Whole, Doc("Number of positions to look at.")] = 256


@dataclass(frozen=True, kw_only=True)
class Distance(Showing):
    """Token encodings: the dot product of two rows, and the closest pair of positions. Rotary
    encodings: the score of an equal query and key. Biases: the number that each head adds. If more
    than the distance matters, the key is at 0.
    """

    dim: options.Width = 128
    length: Annotated[options.Whole, Doc("Number of distances, from 0 on.")] = 60


@dataclass(frozen=True)
class Binary(Command):
    """Two dimensions of an encoding are one sine; the fastest comes first."""

    length: options.Length = 16
    dim: options.Width = 8
    base: options.Base = 16.0
    format: options.Format = "text"


@dataclass(frozen=True)
class Compare(Command):
    """Prints bounds, distances, shifts, norms, and how many rows stay distinct in bfloat16."""

    length: options.Length = 512
    dim: options.Width = 64
    base: options.Base = 10_000.0
    format: options.Format = "text"
