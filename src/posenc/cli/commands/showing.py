"""The commands about encodings: what each takes."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Union

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import Command, File, Flag, Name, Output, SomeWhole, Whole, by_place, named


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

    output: Annotated[Output, Doc("Where to write: .png, .svg or .pdf.")] = None
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
    length: Annotated[Whole, Doc("Number of positions to look at.")] = 256


@dataclass(frozen=True, kw_only=True)
class Distance(Showing):
    """Token encodings: the dot product of two rows, and the closest pair of positions. Rotary
    encodings: the score of an equal query and key. Biases: the number that each head adds. If more
    than the distance matters, the key is at 0.
    """

    dim: options.Width = 128
    length: Annotated[Whole, Doc("Number of distances, from 0 on.")] = 60


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


@dataclass(frozen=True)
class Encode(Command):
    """Each line is a sentence. Without --output the numbers are printed; with it they stream into a
    file of any size, in bounded memory, and the file appears whole or not at all.

    Words and marks are the tokens, or those of a tokenizer.json of Hugging Face, without what it
    puts around a text, as [CLS]. A line of more than --max-length tokens continues in the next row,
    and goes on counting.

    A binary file (.safetensors, .npz) holds ragged rows: values [tokens, dim], ids and positions
    [tokens], offsets [rows + 1] and lines [rows]; row r is values[offsets[r]:offsets[r + 1]]. With
    --pad it holds rectangles: values [rows, longest, dim], ids, positions and mask [rows, longest],
    lengths and lines [rows]; the mask is True at tokens. The parameters and the vocabulary are its
    metadata. A text file (.csv, .json) has a line for each token or row.
    """

    text: Annotated[Optional[str], by_place, named("TEXT"), Doc("Text, or - for stdin.")] = None
    file: Annotated[File, Doc("A text file, UTF-8, one sentence a line.")] = None
    dim: Annotated[SomeWhole, Doc("Width of a vector (default: 64, or theirs).")] = None
    base: options.Base = 10_000.0
    convention: options.Convention = "paper"
    scale: Annotated[Flag, Doc("Multiply embeddings by the square root of dim first.")] = False
    output: Annotated[Output, Doc("Where to write: .safetensors, .npz, .csv or .json.")] = None
    pad: Annotated[Flag, Doc("Pad all rows to the longest, with a mask.")] = False
    format: options.Format = "text"
    dtype: options.DType = "float32"
    tokenizer: Annotated[File, Doc("A tokenizer.json of Hugging Face.")] = None
    vocabulary: Annotated[File, Doc("Own words: one a line, or JSON.")] = None
    vocabulary_size: Annotated[Whole, Doc("Most words; rarer ones become [UNK].")] = 100_000
    lowercase: Annotated[Flag, Doc("Lowercase the text first.")] = False
    save_tokenizer: Annotated[File, Doc("Write the tokenizer too.")] = None
    embeddings: Annotated[File, Doc("Own vectors, .safetensors or .npy (default: random).")] = None
    tensor: Annotated[Name, Doc("Which tensor of the file to take.")] = None
    seed: options.Seed = 0
    max_length: Annotated[Whole, Doc("Most tokens of a row.")] = 512
    batch_size: Annotated[SomeWhole, Doc("Rows of a batch (default: to fit).")] = None


@dataclass(frozen=True)
class Walk(Command):
    """Weights and embeddings are seeded random numbers: they show the mechanism, not a meaning. The
    encoding acts in its place: on tokens, on queries and keys, or on scores.
    """

    text: Annotated[str, by_place, named("TEXT"), Doc("The sentence.")] = "your cat is a lovely cat"
    encoding: options.Expression = None
    dim: Annotated[Whole, Doc("Width of a token.")] = 16
    heads: Annotated[Whole, Doc("Number of attention heads; they share the width.")] = 2
    depth: Annotated[Whole, Doc("Number of blocks; the first is shown.")] = 1
    inner: Annotated[SomeWhole, Doc("Width of feed-forward (default: 4 x dim).")] = None
    norm: Annotated[Literal["pre", "post"], Doc("Norms before each part, or after it.")] = "pre"
    causal: Annotated[Flag, Doc("Hide from each token those after it.")] = False
    stage: Annotated[Optional[str], named("S"), Doc("Show one alone, as softmax or 14.")] = None
    base: Annotated[Optional[float], named("X"), Doc("Of wavelengths (default: 10000).")] = None
    convention: Annotated[Name, Doc("The sinusoidal convention (default: paper).")] = None
    seed: options.Seed = 0
    format: options.TextOrJson = "text"


@dataclass(frozen=True)
class Explore(Command):
    """The page needs no network and sends nothing anywhere: it is served to this machine alone, and
    the file opens from a disk, a stick or an attachment. Without --output the page is served.
    """

    output: Annotated[Output, Doc("Where to write the page: a name ending in .html.")] = None
    port: Annotated[Whole, Doc("Port of 127.0.0.1 to serve at; 0 takes a free one.")] = 0
    no_browser: Annotated[Flag, Doc("Do not open a browser.")] = False


@dataclass(frozen=True)
class Info(Command):
    """The optional parts are not imported."""

    format: options.TextOrJson = "text"
