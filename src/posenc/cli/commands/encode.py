"""``posenc encode``: text to vectors with their positions in them."""

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import UserError, check_heeded, check_least
from posenc.cli.options import File, Flag, Name, Output, SomeWhole, Whole, by_place, named

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from posenc.cli.io.tokens import Text
    from posenc.cli.io.vectors import Batch, Vectors
    from posenc.cli.io.writers import Manifest

BINARY = (".safetensors", ".npz")


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
        found = tokens.Measure()
        for row in tokens.rows(text, tokenizer, self.max_length):
            found.add(row, unknown)
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
        if self.output is None and self.format == "text":
            encode_report.show(next(made), encoding, manifest)
        else:
            self._write(manifest, made)
        if self.save_tokenizer is not None:
            with placed(self.save_tokenizer) as file:
                file.write(tokenizer.to_str(pretty=True).encode())
        if self.output is not None:
            encode_report.summary(self.output, manifest, time.perf_counter() - began)

    def _check(self) -> None:
        """What can be refused before anything is read."""
        from posenc.cli.files import check

        read = {n: getattr(self, n) for n in ("file", "tokenizer", "vocabulary", "embeddings")}
        if self.output is not None:
            check(self.output, *BINARY, ".csv", ".json", **read, save_tokenizer=self.save_tokenizer)
        if self.save_tokenizer is not None:
            check(self.save_tokenizer, **read)
        least = ("max_length", "vocabulary_size", "batch_size")
        check_least(1, **{name: getattr(self, name) for name in least})
        is_binary = self.output is not None and self.output.suffix in BINARY
        check_heeded(
            self,
            format=self.output and "beside --output, whose name says it",
            pad=not is_binary and "but to .safetensors and .npz, which hold rectangles",
            vocabulary=self.tokenizer and "beside --tokenizer",
            lowercase=self.tokenizer and "beside --tokenizer",
        )
        if self.embeddings and not (self.tokenizer or self.vocabulary):
            raise UserError("--embeddings has a row a token: give --vocabulary or --tokenizer")

    def _tokenizer(self, text: "Text") -> "Tokenizer":
        from posenc.cli.io import tokens

        if self.tokenizer:
            return tokens.from_file(self.tokenizer)
        if self.vocabulary:
            return tokens.from_vocabulary(self.vocabulary, self.lowercase)
        return tokens.trained(text, self.vocabulary_size, self.lowercase)

    def _vectors(self, words: dict[str, int], padding: int | None) -> "Vectors":
        from posenc.cli.io.vectors import random_vectors, vectors_from

        if self.embeddings is None:
            return random_vectors(words, 64 if self.dim is None else self.dim, self.seed, padding)
        vectors, tokens = vectors_from(self.embeddings, self.tensor), max(words.values()) + 1
        if self.dim not in (None, vectors.dim) or vectors.tokens < tokens:
            held = f"{self.embeddings} holds [{vectors.tokens}, {vectors.dim}]"
            raise UserError(f"{held}; expected [{tokens} or more, {self.dim or vectors.dim}]")
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
            size = manifest.entries()["values"].end
            check_room(self.output, size * (1 if suffix == ".safetensors" else 2))
        with placed(self.output) as file:
            if suffix == ".safetensors":
                write_safetensors(file, manifest, batches)
            elif suffix == ".npz":
                write_npz(file, manifest, batches, self.output.resolve().parent)
            else:
                write_text(file, manifest, batches, suffix[1:])
