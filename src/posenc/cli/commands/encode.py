"""``posenc encode``: text to vectors with their positions in them."""

import contextlib
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

from posenc.cli import options
from posenc.cli.errors import UserError, check_heeded, check_least
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from posenc.cli.io.tokens import Text
    from posenc.cli.io.vectors import Batch, Vectors
    from posenc.cli.io.writers import Manifest

BINARY = (".safetensors", ".npz")
MOST_WORDS = 100_000


@dataclass(frozen=True)
class Encode:
    """Each line is a sentence. Without --output the numbers are printed; with it they stream into a
    file of any size, in bounded memory, and the file appears whole or not at all.

    A binary file (.safetensors, .npz) holds ragged rows: values [tokens, dim], ids and positions
    [tokens], offsets [rows + 1] and lines [rows]; row r is values[offsets[r]:offsets[r + 1]]. With
    --pad it holds rectangles: values [rows, longest, dim], ids, positions and mask [rows, longest],
    lengths and lines [rows]; the mask is True at tokens. The parameters and the vocabulary are its
    metadata. A text file (.csv, .json) has a line for each token or row.
    """

    text: Annotated[
        Optional[str], by_place, option("The text itself, or - for standard input.", "TEXT")
    ] = None
    file: Annotated[Optional[Path], option("A text file, UTF-8, one sentence a line.", "FILE")] = (
        None
    )
    dim: Annotated[Optional[int], option("Width of a vector.", "N", shown="64, or theirs")] = None
    base: Annotated[float, option("The base of the wavelengths.", "X")] = 10_000.0
    convention: Annotated[str, option("One of those that posenc compare lists.", "NAME")] = "paper"
    scale: Annotated[bool, option("Multiply embeddings by the square root of dim first.")] = False
    output: Annotated[
        Optional[Path],
        option("Where to write: .safetensors, .npz, .csv or .json.", "FILE", short="-o"),
    ] = None
    pad: Annotated[bool, option("Pad all rows to the longest, with a mask.")] = False
    format: options.Format = "text"
    dtype: options.DType = "float32"
    tokenizer: Annotated[
        Optional[Path],
        option(
            "A tokenizer.json of Hugging Face; what it puts around a text, as [CLS], is left out. "
            "Without it, words and marks are the tokens.",
            "FILE",
        ),
    ] = None
    vocabulary: Annotated[Optional[Path], option("Own words: one a line, or JSON.", "FILE")] = None
    vocabulary_size: Annotated[
        Optional[int],
        option(
            "Most words to take from the text; rarer ones become [UNK].", "N", shown=str(MOST_WORDS)
        ),
    ] = None
    lowercase: Annotated[bool, option("Lowercase the text first.")] = False
    save_tokenizer: Annotated[Optional[Path], option("Write the tokenizer too.", "FILE")] = None
    embeddings: Annotated[
        Optional[Path],
        option(
            "Your own vectors [tokens, dim], .safetensors or .npy; else seeded random ones.", "FILE"
        ),
    ] = None
    tensor: Annotated[Optional[str], option("Which tensor of the file to take.", "NAME")] = None
    seed: options.Seed = 0
    max_length: Annotated[
        int,
        option(
            "Most tokens of a row; a longer line continues in the next row, and goes on counting.",
            "N",
        ),
    ] = 512
    batch_size: Annotated[Optional[int], option("Rows of a batch.", "N", shown="to fit")] = None

    def run(self) -> None:
        """Reads the text two or three times, and holds one batch of it."""
        import torch

        from posenc import Sinusoidal
        from posenc.cli.files import placed
        from posenc.cli.io import tokens
        from posenc.cli.io.vectors import NUMBERS, batches
        from posenc.cli.io.writers import Manifest
        from posenc.cli.render import encode_report

        self._check()
        began, dtype = time.perf_counter(), getattr(torch, self.dtype)
        text = tokens.text_from(self.text, self.file)
        tokenizer = self._tokenizer(text)
        words = tokens.words_by_id(tokenizer)
        padding, unknown = (tokens.special(words, n) for n in (tokens.PADDING, tokens.UNKNOWN))
        found = tokens.Measure.of(tokens.rows(text, tokenizer, self.max_length), unknown)
        if not found.tokens:
            raise UserError("no text: it holds no token; give at least one word")
        vectors = self._vectors(words, padding)
        scale = "sqrt_dim" if self.scale else None
        encoding = Sinusoidal(vectors.dim, self.base, self.convention, scale=scale)
        about = self._parameters(vectors.dim, padding or 0)
        manifest = Manifest(found, vectors.dim, dtype, self.pad, about, words)
        size = self.batch_size or max(1, NUMBERS // (found.longest * vectors.dim))
        read = tokens.rows(text, tokenizer, self.max_length)
        made = batches(read, size, vectors, encoding, dtype)
        with contextlib.ExitStack() as stack:
            if self.save_tokenizer is not None:
                file = stack.enter_context(placed(self.save_tokenizer))
                file.write(tokenizer.to_str(pretty=True).encode())
                file.flush()
            if self.output is None and self.format == "text":
                encode_report.show(next(made), encoding, manifest)
            else:
                self._write(manifest, made)
        if self.output:
            encode_report.summary(self.output, manifest, time.perf_counter() - began)

    def _check(self) -> None:
        """What can be refused before anything is read."""
        from posenc.cli.files import check

        read = {n: getattr(self, n) for n in ("file", "tokenizer", "vocabulary", "embeddings")}
        if self.output is not None:
            check(self.output, *BINARY, ".csv", ".json", **read, save_tokenizer=self.save_tokenizer)
        if self.save_tokenizer is not None:
            check(self.save_tokenizer, **read)
        check_least(
            1,
            max_length=self.max_length,
            vocabulary_size=self.vocabulary_size,
            batch_size=self.batch_size,
        )
        own = self.tokenizer or self.vocabulary
        binary = self.output is not None and self.output.suffix in BINARY
        tensors = self.embeddings is not None and self.embeddings.suffix == ".safetensors"
        check_heeded(
            self,
            format=self.output and "beside --output, whose name says it",
            pad=not binary and "but to .safetensors and .npz, which hold rectangles",
            vocabulary=self.tokenizer and "beside --tokenizer",
            lowercase=self.tokenizer and "beside --tokenizer",
            vocabulary_size=own and "where words are given",
            tensor=not tensors and "but of .safetensors --embeddings",
            seed=self.embeddings and "beside --embeddings",
        )
        if self.embeddings and not own:
            raise UserError(
                "--embeddings need to know which row is which token: give --vocabulary or "
                "--tokenizer"
            )

    def _tokenizer(self, text: "Text") -> "Tokenizer":
        from posenc.cli.io import tokens

        if self.tokenizer:
            return tokens.from_file(self.tokenizer)
        if self.vocabulary:
            return tokens.from_vocabulary(self.vocabulary, self.lowercase)
        return tokens.trained(text, self.vocabulary_size or MOST_WORDS, self.lowercase)

    def _vectors(self, words: dict[str, int], padding: int | None) -> "Vectors":
        from posenc.cli.io.vectors import random_vectors, vectors_from

        if self.embeddings is None:
            return random_vectors(words, 64 if self.dim is None else self.dim, self.seed, padding)
        vectors, tokens = vectors_from(self.embeddings, self.tensor), max(words.values()) + 1
        if self.dim not in (None, vectors.dim):
            raise UserError(f"--dim is {self.dim}, and {self.embeddings} has width {vectors.dim}")
        if vectors.tokens < tokens:
            raise UserError(
                f"{self.embeddings} has {vectors.tokens} rows, and the vocabulary needs {tokens}"
            )
        return vectors

    def _parameters(self, dim: int, padding: int) -> dict[str, Any]:
        from importlib import metadata

        same = ("base", "convention", "dtype", "seed", "max_length")
        return {
            **{name: getattr(self, name) for name in same},
            "posenc": metadata.version("posenc"),
            "encoding": "Sinusoidal",
            "dim": dim,
            "scale": "sqrt_dim" if self.scale else "none",
            "embeddings": str(self.embeddings or "random"),
            "tokenizer": str(self.tokenizer or self.vocabulary or "trained on the text"),
            "padding_id": padding,
        }

    def _write(self, manifest: "Manifest", batches: "Iterable[Batch]") -> None:
        from posenc.cli.files import check_room, placed
        from posenc.cli.io.writers import write_npz, write_safetensors, write_text

        if self.output is None:
            write_text(sys.stdout.buffer, manifest, batches, self.format)
            return
        suffix = self.output.suffix
        if suffix in BINARY:
            check_room(self.output, manifest.bytes() * (1 if suffix == ".safetensors" else 2))
        with placed(self.output) as file:
            if suffix == ".safetensors":
                write_safetensors(file, manifest, batches)
            elif suffix == ".npz":
                write_npz(file, manifest, batches, self.output.resolve().parent)
            else:
                write_text(file, manifest, batches, suffix[1:])
