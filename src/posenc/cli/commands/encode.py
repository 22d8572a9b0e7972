"""``posenc encode``: text to vectors with their positions in them."""

from dataclasses import dataclass
from typing import Annotated, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import File, Flag, Name, Output, SomeWhole, Whole, by_place, named


@dataclass(frozen=True)
class Encode:
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

    text: Annotated[
        Optional[str], by_place, named("TEXT"), Doc("The text, or - for standard input.")
    ] = None
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

    def run(self) -> None:
        """Encodes."""
        from posenc.cli.io.encode import encode

        encode(self)
