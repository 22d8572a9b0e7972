"""``posenc encode``: text to vectors with their positions in them."""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Optional

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from posenc.cli.io.batches import Batches
    from posenc.cli.io.embeddings import Vectors
    from posenc.cli.io.progress import Progress
    from posenc.cli.io.rows import Measure
    from posenc.cli.io.text import Text
    from posenc.cli.io.writers import Manifest

BINARY = (".safetensors", ".npz")
SUFFIXES = (*BINARY, ".csv", ".json")
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
        Optional[str], by_place, option("The text itself, or - for standard input.", metavar="TEXT")
    ] = None
    file: Annotated[
        Optional[Path], option("A text file, UTF-8, one sentence a line.", metavar="FILE")
    ] = None
    dim: Annotated[
        Optional[int],
        option(
            "Width of a vector; that of the --embeddings where they are given.",
            metavar="N",
            shown="64",
        ),
    ] = None
    base: Annotated[float, option("The n of the formula.", metavar="X")] = 10_000.0
    convention: Annotated[
        str, option("One of those that posenc compare lists.", metavar="NAME")
    ] = "paper"
    scale: Annotated[
        bool,
        option("Multiply the embeddings by the square root of dim first, as the paper does."),
    ] = False
    output: Annotated[
        Optional[Path],
        option("Where to write: .safetensors, .npz, .csv or .json.", metavar="FILE", short="-o"),
    ] = None
    pad: Annotated[
        bool,
        option("Pad all rows to the longest, with a mask; this can be many times larger."),
    ] = False
    format: options.Format = "text"
    dtype: options.DType = "float32"
    tokenizer: Annotated[
        Optional[Path],
        option(
            "A tokenizer.json of Hugging Face; what it puts around a text, as [CLS], is left out. "
            "Without it, words and marks are the tokens.",
            metavar="FILE",
        ),
    ] = None
    vocabulary: Annotated[
        Optional[Path],
        option(
            "Your own words: one a line, or JSON. Without it, the text gives them.", metavar="FILE"
        ),
    ] = None
    vocabulary_size: Annotated[
        Optional[int],
        option(
            "Most words to take from the text; rarer ones become [UNK].",
            metavar="N",
            shown=str(MOST_WORDS),
        ),
    ] = None
    lowercase: Annotated[bool, option("Lowercase the text first.")] = False
    save_tokenizer: Annotated[
        Optional[Path],
        option("Also write the tokenizer, to encode more text with the same ids.", metavar="FILE"),
    ] = None
    embeddings: Annotated[
        Optional[Path],
        option(
            "Your own vectors [tokens, dim], .safetensors or .npy; else seeded random ones.",
            metavar="FILE",
        ),
    ] = None
    tensor: Annotated[
        Optional[str], option("Which tensor of the .safetensors file to take.", metavar="NAME")
    ] = None
    seed: options.Seed = 0
    max_length: Annotated[
        int,
        option(
            "Most tokens of a row; a longer line continues in the next row, and goes on counting.",
            metavar="N",
        ),
    ] = 512
    batch_size: Annotated[
        Optional[int], option("Rows that are encoded together.", metavar="N", shown="to fit")
    ] = None

    def run(self) -> None:
        """Reads twice, writes once, and holds one batch at a time."""
        import time

        from posenc.cli.io import tokenization
        from posenc.cli.io.progress import Progress
        from posenc.cli.io.rows import measure
        from posenc.cli.io.text import open_text
        from posenc.cli.render import encode_report

        self._check()
        began = time.perf_counter()
        with open_text(self.text, self.file) as text, Progress(text) as progress:
            tokenizer = self._tokenizer(text, progress)
            words = tokenization.words_by_id(tokenizer)
            unknown = tokenization.special(words, tokenization.UNKNOWN)
            progress.stage("measuring")
            found = measure(text, tokenizer, self.max_length, unknown)
            if not found.tokens:
                raise UserError(f"no text: {text.name} holds no token; give at least one word")
            with self._saved(tokenizer):
                manifest = self._encode(text, tokenizer, words, found, progress)
        if self.output:
            seconds = time.perf_counter() - began
            encode_report.summary(self.output, manifest, found, seconds)

    def _check(self) -> None:
        """What can be refused before anything is read."""
        output, saved = self.output, self.save_tokenizer
        if output is not None:
            if output.suffix not in SUFFIXES:
                raise UserError(f"{output}: the name must end in one of {', '.join(SUFFIXES)}")
            if self.format != "text":
                raise UserError(
                    "got both --output and --format; the name of the output says it already"
                )
        if self.pad and (output is None or output.suffix not in BINARY):
            raise UserError(
                f"--pad makes rectangles, which only {' and '.join(BINARY)} hold; give such an "
                "--output, or leave --pad out"
            )
        if output and saved and output.resolve() == saved.resolve():
            raise UserError(f"{output} is also the --save-tokenizer; give one of them another name")
        self._check_paths()
        for name in ("max_length", "vocabulary_size", "batch_size"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UserError(f"--{name.replace('_', '-')} is {value}; it must be at least 1")
        if self.tokenizer and (self.vocabulary or self.lowercase):
            raise UserError(
                "--tokenizer brings its own words; leave --vocabulary and --lowercase out"
            )
        if self.vocabulary_size is not None and (self.tokenizer or self.vocabulary):
            raise UserError(
                "--vocabulary-size is of words that are taken from the text; "
                "leave it out where --vocabulary or --tokenizer has words of its own"
            )
        if self.tensor and (not self.embeddings or self.embeddings.suffix != ".safetensors"):
            raise UserError("--tensor chooses one of .safetensors --embeddings; leave it out")
        if self.seed and self.embeddings is not None:
            raise UserError(
                "--seed draws vectors, which --embeddings brings; leave one of them out"
            )
        if self.embeddings and not (self.tokenizer or self.vocabulary):
            raise UserError(
                "--embeddings need to know which row is which token: "
                "give --vocabulary (one token a line) or --tokenizer (tokenizer.json)"
            )

    def _check_paths(self) -> None:
        """Nothing that is read may be written, by whatever name or link."""
        from posenc.cli.io.atomic import check, check_apart

        read = ("file", "tokenizer", "vocabulary", "embeddings")
        for path in filter(None, (self.output, self.save_tokenizer)):
            check(path)
            check_apart(path, **{name: getattr(self, name) for name in read})

    def _tokenizer(self, text: "Text", progress: "Progress") -> "Tokenizer":
        from posenc.cli.io import tokenization

        if self.tokenizer:
            return tokenization.from_file(self.tokenizer)
        if self.vocabulary:
            return tokenization.from_vocabulary(self.vocabulary, self.lowercase)
        progress.stage("vocabulary")
        return tokenization.trained(text, self.vocabulary_size or MOST_WORDS, self.lowercase)

    def _saved(self, tokenizer: "Tokenizer") -> AbstractContextManager[None]:
        """The tokenizer, kept where the vectors are too."""
        from posenc.cli.io.atomic import kept

        if self.save_tokenizer is None:
            return nullcontext()
        return kept(self.save_tokenizer, tokenizer.to_str(pretty=True).encode())

    def _encode(
        self,
        text: "Text",
        tokenizer: "Tokenizer",
        words: dict[str, int],
        found: "Measure",
        progress: "Progress",
    ) -> "Manifest":
        """Encodes every row, and prints or writes what comes of it."""
        from posenc.cli.io import tokenization
        from posenc.cli.io.batches import as_measured
        from posenc.cli.io.rows import rows
        from posenc.cli.render import encode_report

        padding = tokenization.special(words, tokenization.PADDING)
        batches = self._batches(self._vectors(max(words.values()) + 1, padding), found)
        manifest = self._manifest(words, found, batches, padding or 0)
        if self.output:
            self._check_room(self.output, manifest, batches, progress)
        progress.stage("encoding")
        each = batches.each(as_measured(rows(text, tokenizer, self.max_length), found))
        if self.output is None and self.format == "text":
            progress.stop()
            encode_report.show(next(each), batches, manifest, found)
        else:
            self._write(manifest, each)
        return manifest

    def _vectors(self, tokens: int, padding: int | None) -> "Vectors":
        from posenc.cli.io.embeddings import random_vectors, vectors_from

        if self.embeddings is None:
            dim = 64 if self.dim is None else self.dim
            return random_vectors(tokens, dim, self.seed, padding)
        vectors = vectors_from(self.embeddings, self.tensor)
        if self.dim not in (None, vectors.dim):
            raise UserError(
                f"{self.embeddings} has vectors of width {vectors.dim}, and --dim is {self.dim}; "
                "leave --dim out or give vectors of that width"
            )
        if vectors.tokens < tokens:
            raise UserError(
                f"{self.embeddings} has {vectors.tokens} rows, and the vocabulary needs {tokens}; "
                "give the vocabulary that belongs to these vectors"
            )
        return vectors

    def _batches(self, vectors: "Vectors", found: "Measure") -> "Batches":
        import torch

        from posenc import Sinusoidal
        from posenc.cli.io.batches import Batches

        scale = "sqrt_dim" if self.scale else None
        encoding = Sinusoidal(vectors.dim, self.base, self.convention, scale=scale)
        dtype = getattr(torch, self.dtype)
        return Batches.of(
            vectors, encoding, found, dtype=dtype, rows=self.batch_size, padded=self.pad
        )

    def _manifest(
        self, words: dict[str, int], found: "Measure", batches: "Batches", padding: int
    ) -> "Manifest":
        from importlib import metadata

        from posenc.cli.io.writers import Manifest

        parameters: dict[str, Any] = {
            "posenc": metadata.version("posenc"),
            "encoding": "Sinusoidal",
            "dim": batches.vectors.dim,
            "base": self.base,
            "convention": self.convention,
            "scale": "sqrt_dim" if self.scale else "none",
            "dtype": self.dtype,
            "embeddings": str(self.embeddings) if self.embeddings else "random",
            "seed": self.seed,
            "tokenizer": str(self.tokenizer or self.vocabulary or "trained on the text"),
            "max_length": self.max_length,
            "padding_id": padding,
        }
        shape = (found.rows, found.tokens, found.longest, batches.vectors.dim)
        return Manifest(*shape, batches.dtype, self.pad, parameters, words)

    def _check_room(
        self, output: Path, manifest: "Manifest", batches: "Batches", progress: "Progress"
    ) -> None:
        """Says how large the file will be, and refuses what the disk cannot hold."""
        from posenc.cli.io import disk
        from posenc.cli.io.writers.sizes import EXACT, contents, expected, needed

        exact = output.suffix in EXACT
        size = expected(output.suffix, manifest, batches)
        advice = "leave --pad out" if self.pad else "choose another folder, or a narrower --dtype"
        disk.check_room(output, needed(output.suffix, manifest, size), advice)
        if size >= disk.LARGE:
            progress.say(disk.announcement(output, size, contents(manifest), exact=exact))

    def _write(self, manifest: "Manifest", batches: Any) -> None:
        from posenc.cli.io.atomic import atomic
        from posenc.cli.io.writers import writer_for

        target: AbstractContextManager[BinaryIO] = nullcontext(sys.stdout.buffer)
        suffix, folder = f".{self.format}", Path()
        if self.output:
            suffix, folder = self.output.suffix, self.output.resolve().parent
            target = atomic(self.output)
        with target as file:
            writer = writer_for(suffix, file, manifest, folder)
            try:
                for batch in batches:
                    writer.add(batch)
                writer.close()
            except BaseException:
                writer.abandon()
                raise
