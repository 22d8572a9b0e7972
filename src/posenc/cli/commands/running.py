"""The commands that run something, on a text or on this machine: what each takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import File, Flag, Name, Output, SomeWhole, Whole, by_place, named


@dataclass(frozen=True)
class Encode(options.Command):
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
    embeddings: Annotated[
        File, Doc("Your own vectors [tokens, dim], .safetensors or .npy; else seeded random ones.")
    ] = None
    tensor: Annotated[Name, Doc("Which tensor of the file to take.")] = None
    seed: options.Seed = 0
    max_length: Annotated[Whole, Doc("Most tokens of a row.")] = 512
    batch_size: Annotated[SomeWhole, Doc("Rows of a batch (default: to fit).")] = None


@dataclass(frozen=True)
class Walk(options.Command):
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
class Lab(options.Command):
    """plan GRID prints how many runs a grid has, and how long they take on this machine.

    run GRID makes the runs that are left, and prints a summary. You may stop it and run it again.

    status GRID prints which runs are made, running, failed and left.

    report GRID writes one HTML page, with Markdown and CSV beside it.

    show RUN prints one run, by its id or the start of its id.

    clean removes the leftovers of killed and failed runs, and keeps results.

    GRID is a TOML file, or one that comes with posenc: quick, standard or extension.
    """

    action: Annotated[
        Literal["plan", "run", "status", "report", "show", "clean"], by_place, Doc("What to do.")
    ]
    target: Annotated[Optional[str], by_place, named("GRID"), Doc("A grid, or a run.")] = None
    folder: Annotated[Path, named("FOLDER"), Doc("Results, or an export.")] = Path("lab-results")
    encoding: Annotated[
        options.Words, named("EXPRESSION"), Doc('More encodings, as "mine.py:MyBias({heads})".')
    ] = None
    workers: Annotated[Whole, Doc("Runs at a time, a process each.")] = 1
    engine: Annotated[Literal["local", "ray"], Doc("Who runs: this machine, or Ray.")] = "local"
    output: Annotated[Output, Doc("The report, .html (default: GRID.html).")] = None
    export: Annotated[
        File, Doc("Write results too: .json to be kept, or one table, .csv or .parquet (DuckDB).")
    ] = None
    query: Annotated[Optional[str], named("SQL"), Doc("For show: SQL over the table runs.")] = None


@dataclass(frozen=True)
class Explore(options.Command):
    """The page needs no network and sends nothing anywhere: it is served to this machine alone, and
    the file opens from a disk, a stick or an attachment. Without --output the page is served.
    """

    output: Annotated[Output, Doc("Where to write the page: a name ending in .html.")] = None
    port: Annotated[Whole, Doc("Port of 127.0.0.1 to serve at; 0 takes a free one.")] = 0
    no_browser: Annotated[Flag, Doc("Do not open a browser.")] = False


@dataclass(frozen=True)
class Info(options.Command):
    """The optional parts are not imported."""

    format: options.TextOrJson = "text"
