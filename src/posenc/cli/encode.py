"""``posenc encode``: text to vectors with their positions in them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from posenc.cli.options import Base, Convention, DType, Format, Output, Seed

File = Annotated[Path | None, arg(metavar="FILE")]
Count = Annotated[int, arg(metavar="N")]


@dataclass(frozen=True)
class Encode:
    """Tokenize text, look its tokens up, embed them, and add their positions.

    Each line is a sentence. Without --output the numbers are printed; with it they stream into a
    file of any size, in bounded memory, and the file appears whole or not at all.

    A binary file (.safetensors, .npz) holds encoded [rows, longest, dim], mask and ids [rows,
    longest], lengths, lines and starts [rows], and the parameters with the vocabulary as metadata.
    Rows are padded with zeros; the mask is True at tokens. A text file (.csv, .json) has no
    padding.
    """

    text: Annotated[Positional[str | None], arg(metavar="[TEXT]", help_behavior_hint="")] = None
    """The text itself, or - for standard input."""
    file: File = None
    """A text file, UTF-8, one sentence a line."""
    dim: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 64)")] = None
    """Width of a vector; that of the --embeddings where they are given."""
    base: Base = 10_000.0
    convention: Convention = "paper"
    scale: bool = False
    """Multiply the embeddings by the square root of dim first, as the paper does."""
    output: Output = None
    """Where to write: .safetensors, .npz, .csv or .json."""
    format: Format = "text"
    dtype: DType = "float32"
    tokenizer: File = None
    """A tokenizer.json of Hugging Face; without it, words and marks are the tokens."""
    vocabulary: File = None
    """Your own words: one a line, or JSON. Without it, the text gives them."""
    vocabulary_size: Count = 100_000
    """Most words to take from the text; rarer ones become [UNK]."""
    lowercase: bool = False
    """Lowercase the text first."""
    save_tokenizer: File = None
    """Also write the tokenizer, to encode more text with the same ids."""
    embeddings: File = None
    """Your own vectors [tokens, dim], .safetensors or .npy; without them, seeded random ones."""
    tensor: Annotated[str | None, arg(metavar="NAME")] = None
    """Which tensor of the .safetensors file to take."""
    seed: Seed = 0
    max_length: Count = 512
    """Most tokens of a row; a longer line continues in the next row, and goes on counting."""
    batch_size: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: to fit)")] = (
        None
    )
    """Rows that are encoded together."""

    def run(self) -> None:
        """Reads, encodes, and prints or writes."""
        from posenc.cli.encoding import encode

        encode(self)
