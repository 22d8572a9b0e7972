"""The work of ``posenc encode``: read twice, write once, hold one batch at a time."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli import encode_report, vocabulary
from posenc.cli.atomic import atomic, check
from posenc.cli.embeddings import Vectors, random_vectors, vectors_from
from posenc.cli.encode import Encode
from posenc.cli.errors import UserError
from posenc.cli.progress import Progress
from posenc.cli.rows import Measure, Row, measure, rows
from posenc.cli.text import Text, open_text
from posenc.cli.writers import Batch, Plan, writer_for
from posenc.positions import consecutive

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SUFFIXES = (".safetensors", ".npz", ".csv", ".json")
# Numbers of one batch, where --batch-size leaves the choice: 16 MB of float32.
NUMBERS = 1 << 22


def encode(arguments: Encode) -> None:
    """Runs the command."""
    _check(arguments)
    began = time.perf_counter()
    with open_text(arguments.text, arguments.file) as text, Progress(text) as progress:
        tokenizer = _tokenizer(arguments, text, progress)
        words = vocabulary.words_by_id(tokenizer)
        unknown = vocabulary.special(words, vocabulary.UNKNOWN)
        progress.stage("measuring")
        found = measure(text, tokenizer, arguments.max_length, unknown)
        if not found.tokens:
            raise UserError(f"no text: {text.name} holds no token; give at least one word")
        encoder = Encoder.of(arguments, words, found)
        plan = _plan(arguments, words, found, encoder)
        progress.stage("encoding")
        batches = encoder.batches(_counted(rows(text, tokenizer, arguments.max_length), found))
        if arguments.output is None and arguments.format == "text":
            encode_report.show(next(iter(batches)), encoder.parts, plan, found, progress)
        else:
            _write(arguments, plan, batches)
    if arguments.save_tokenizer:
        with atomic(arguments.save_tokenizer) as file:
            file.write(tokenizer.to_str(pretty=True).encode())
    if arguments.output:
        encode_report.summary(arguments.output, plan, found, time.perf_counter() - began)


def _check(arguments: Encode) -> None:
    """What can be refused before anything is read."""
    output = arguments.output
    if output is not None:
        if output.suffix not in SUFFIXES:
            raise UserError(f"{output}: the name must end in one of {', '.join(SUFFIXES)}")
        if arguments.format != "text":
            raise UserError(
                "got both --output and --format; the name of the output says it already"
            )
    saved = arguments.save_tokenizer
    if output and saved and output.absolute() == saved.absolute():
        raise UserError(f"{output} is also the --save-tokenizer; give one of them another name")
    for path in filter(None, (output, saved)):
        check(path)
        for name in ("file", "tokenizer", "vocabulary", "embeddings"):
            source = getattr(arguments, name)
            if source and source.exists() and path.exists() and path.samefile(source):
                raise UserError(f"{path} is also the --{name}; give the output another name")
    for name in ("max_length", "vocabulary_size", "batch_size"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} is {value}; it must be at least 1")
    if arguments.tokenizer and (arguments.vocabulary or arguments.lowercase):
        raise UserError("--tokenizer brings its own words; leave --vocabulary and --lowercase out")
    if arguments.embeddings and not (arguments.tokenizer or arguments.vocabulary):
        raise UserError(
            "--embeddings need to know which row is which token: "
            "give --vocabulary (one token a line) or --tokenizer (tokenizer.json)"
        )


def _tokenizer(arguments: Encode, text: Text, progress: Progress) -> "Tokenizer":
    if arguments.tokenizer:
        return vocabulary.from_file(arguments.tokenizer)
    if arguments.vocabulary:
        return vocabulary.from_vocabulary(arguments.vocabulary, arguments.lowercase)
    progress.stage("vocabulary")
    return vocabulary.trained(text, arguments.vocabulary_size, arguments.lowercase)


@dataclass(frozen=True)
class Encoder:
    """Rows of ids to batches of encoded vectors.

    Attributes:
        vectors: The embeddings.
        encoding: What adds the positions.
        table: The rows of the table from position 0, as long as the longest row.
        dtype: dtype of the result.
        padding: The id that fills short rows.
        together: Rows of a batch.
    """

    vectors: Vectors
    encoding: Sinusoidal
    table: Tensor
    dtype: torch.dtype
    padding: int
    together: int

    @classmethod
    def of(cls, arguments: Encode, words: dict[str, int], found: Measure) -> "Encoder":
        """The encoder that the arguments ask for."""
        padding = vocabulary.special(words, vocabulary.PADDING)
        vectors = _vectors(arguments, max(words.values()) + 1, padding)
        encoding = Sinusoidal(
            vectors.dim,
            arguments.base,
            arguments.convention,
            scale="sqrt_dim" if arguments.scale else None,
        )
        dtype = getattr(torch, arguments.dtype)
        table = encoding.table(
            consecutive(found.longest), dtype=torch.promote_types(dtype, torch.float32)
        )
        together = arguments.batch_size or max(1, NUMBERS // (found.longest * vectors.dim))
        return cls(vectors, encoding, table, dtype, padding or 0, together)

    def batches(self, rows: Iterable[Row]) -> Iterator[Batch]:
        """All rows, in order, some at a time."""
        held: list[Row] = []
        for row in rows:
            held.append(row)
            if len(held) == self.together:
                yield self._batch(held)
                held = []
        if held:
            yield self._batch(held)

    @torch.no_grad()
    def parts(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The embeddings of a batch, and the rows of the table that belong to them."""
        x = self.vectors.look_up(batch.ids).to(self.table.dtype)
        if not batch.starts.any():
            return x, self.table[: x.shape[1]].expand_as(x)
        positions = batch.starts[:, None] + consecutive(x.shape[1])
        return x, self.encoding.table(positions, dtype=self.table.dtype)

    @torch.no_grad()
    def _batch(self, rows: list[Row]) -> Batch:
        lengths = torch.tensor([len(row.ids) for row in rows])
        mask = consecutive(int(lengths.max())) < lengths[:, None]
        ids = torch.full(mask.shape, self.padding)
        ids[mask] = torch.tensor([number for row in rows for number in row.ids])
        batch = Batch(
            encoded=torch.empty(0),
            ids=ids,
            mask=mask,
            lengths=lengths,
            lines=torch.tensor([row.line for row in rows]),
            starts=torch.tensor([row.start for row in rows]),
        )
        encoded = self.encoding.encode(*self.parts(batch)).to(self.dtype)
        return batch.with_encoded(encoded.masked_fill_(~mask[..., None], 0))


def _vectors(arguments: Encode, tokens: int, padding: int | None) -> Vectors:
    if arguments.embeddings is None:
        dim = 64 if arguments.dim is None else arguments.dim
        return random_vectors(tokens, dim, arguments.seed, padding)
    vectors = vectors_from(arguments.embeddings, arguments.tensor)
    if arguments.dim not in (None, vectors.dim):
        raise UserError(
            f"{arguments.embeddings} has vectors of width {vectors.dim}, and --dim is "
            f"{arguments.dim}; leave --dim out or give vectors of that width"
        )
    if vectors.tokens < tokens:
        raise UserError(
            f"{arguments.embeddings} has {vectors.tokens} rows, and the vocabulary needs {tokens}; "
            "give the vocabulary that belongs to these vectors"
        )
    return vectors


def _plan(arguments: Encode, words: dict[str, int], found: Measure, encoder: Encoder) -> Plan:
    own = arguments.embeddings
    parameters: dict[str, Any] = {
        "posenc": metadata.version("posenc"),
        "encoding": "Sinusoidal",
        "dim": encoder.vectors.dim,
        "base": arguments.base,
        "convention": arguments.convention,
        "scale": "sqrt_dim" if arguments.scale else "none",
        "dtype": arguments.dtype,
        "embeddings": str(own) if own else "random",
        "seed": arguments.seed,
        "tokenizer": str(arguments.tokenizer or arguments.vocabulary or "trained on the text"),
        "max_length": arguments.max_length,
        "padding_id": encoder.padding,
    }
    shape = (found.rows, found.longest, encoder.vectors.dim)
    return Plan(*shape, encoder.dtype, parameters, words)


def _counted(rows: Iterable[Row], found: Measure) -> Iterator[Row]:
    """The rows, as many and as long as measured: a file that grows meanwhile would not fit."""
    count = 0
    for row in rows:
        count += 1
        if count > found.rows or len(row.ids) > found.longest:
            raise UserError("the text changed while it was read; try again")
        yield row
    if count != found.rows:
        raise UserError("the text changed while it was read; try again")


def _write(arguments: Encode, plan: Plan, batches: Iterable[Batch]) -> None:
    target: AbstractContextManager[BinaryIO] = nullcontext(sys.stdout.buffer)
    suffix, folder = f".{arguments.format}", Path()
    if arguments.output:
        suffix, folder = arguments.output.suffix, arguments.output.absolute().parent
        target = atomic(arguments.output)
    with target as file:
        writer = writer_for(suffix, file, plan, folder)
        for batch in batches:
            writer.add(batch)
        writer.close()
