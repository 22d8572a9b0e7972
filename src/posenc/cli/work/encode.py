"""``posenc encode``: the text is read two or three times, and one batch of it is held."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import torch
from rich.filesize import decimal
from safetensors import safe_open
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli import tokens
from posenc.cli.errors import UserError, check_heeded
from posenc.cli.files import check, placed
from posenc.cli.printing import grid, number
from posenc.cli.tokens import Row
from posenc.cli.writers import Batch, Manifest, write_npz, write_safetensors, write_text
from posenc.inspection.words import word_vectors
from posenc.positions import consecutive

BINARY = (".safetensors", ".npz")

NUMBERS = 1 << 22
"""Numbers of one batch, where --batch-size leaves the choice: 16 MB of float32."""

LookUp = Callable[[Tensor], Tensor]
"""Takes ids ``[n]`` to vectors ``[n, dim]``."""

SHOWN = 24
"""Tokens that are printed; more would scroll away."""


@torch.no_grad()
def encode(asked: Any) -> None:
    _check(asked)
    text, dtype = tokens.text_from(asked.text, asked.file), getattr(torch, asked.dtype)
    tokenizer = tokens.tokenizer_of(asked, text)
    words = dict(sorted(tokenizer.get_vocab().items(), key=lambda each: each[1]))
    padding, unknown = (tokens.special(words, n) for n in (tokens.PADDING, tokens.UNKNOWN))
    dim, look_up = _vectors(asked, words, padding)
    manifest = Manifest(dim, dtype, asked.pad, _parameters(asked, dim, padding or 0), words)
    manifest.count(tokens.rows(text, tokenizer, asked.max_length), unknown)
    if not manifest.tokens:
        raise UserError("no text: it holds no token; give at least one word")
    scale = "sqrt_dim" if asked.scale else None
    encoding = Sinusoidal(dim, asked.base, asked.convention, scale=scale)
    size = asked.batch_size or max(1, NUMBERS // (manifest.longest * dim))
    read = tokens.rows(text, tokenizer, asked.max_length)
    made = _batches(read, size, look_up, encoding, dtype)
    if asked.output is None and asked.format == "text":
        _show(next(made), encoding, manifest)
    else:
        _write(asked, manifest, made)
    if asked.save_tokenizer is not None:
        with placed(asked.save_tokenizer) as file:
            file.write(tokenizer.to_str(pretty=True).encode())


def _check(asked: Any) -> None:
    """What can be refused before anything is read."""
    read = {n: getattr(asked, n) for n in ("file", "tokenizer", "vocabulary", "embeddings")}
    if asked.output is not None:
        saved = asked.save_tokenizer
        check(asked.output, *BINARY, ".csv", ".json", **read, save_tokenizer=saved)
    if asked.save_tokenizer is not None:
        check(asked.save_tokenizer, **read)
    is_binary = asked.output is not None and asked.output.suffix in BINARY
    check_heeded(
        asked,
        format=asked.output and "beside --output, whose name says it",
        pad=not is_binary and "but to .safetensors and .npz, which hold rectangles",
        vocabulary=asked.tokenizer and "beside --tokenizer",
        lowercase=asked.tokenizer and "beside --tokenizer",
    )
    if asked.embeddings and not (asked.tokenizer or asked.vocabulary):
        raise UserError("--embeddings has a row a token: give --vocabulary or --tokenizer")


def _vectors(asked: Any, words: dict[str, int], padding: int | None) -> tuple[int, LookUp]:
    """The width of vectors, and where they come from: drawn from the words, or of a file."""
    file, dim = asked.embeddings, asked.dim
    if file is None:
        dim = dim or 64
        by_id = {number: word for word, number in words.items()}
        return dim, partial(_drawn, by_id, dim, asked.seed, padding)
    if file.suffix == ".npy":  # read where it is needed
        held: Any = np.load(file, mmap_mode="r")
        floats = held.dtype.kind == "f"
    elif file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as opened:
            names, name = list(opened.keys()), asked.tensor
            if name not in names and (name is not None or len(names) > 1):
                raise UserError(f"{file} has no tensor {name}; --tensor takes {', '.join(names)}")
            held = opened.get_tensor(name or names[0])
        floats = held.is_floating_point()
    else:
        raise UserError(f"{file}: --embeddings takes .safetensors or .npy")
    count = max(words.values()) + 1
    fits = held.ndim == 2 and len(held) >= count and dim in (None, held.shape[1])
    if not (floats and fits):
        told = f"expected floating-point numbers [{count} or more, {dim or 'dim'}]"
        raise UserError(f"{file} holds {list(held.shape)} of {held.dtype}; {told}")
    if isinstance(held, Tensor):
        return held.shape[1], held.__getitem__
    return held.shape[1], lambda ids: torch.from_numpy(held[ids.numpy()].astype(np.float64))


def _drawn(words: dict[int, str], dim: int, seed: int, padding: int | None, ids: Tensor) -> Tensor:
    """Random vectors, drawn from the words themselves; that of padding is zero."""
    distinct, places = ids.unique(return_inverse=True)
    drawn = word_vectors([words[number] for number in distinct.tolist()], dim, seed=seed)
    drawn[distinct == padding] = 0.0
    return drawn[places]


def _batches(
    read: Iterator[Row], size: int, look_up: LookUp, encoding: Sinusoidal, dtype: torch.dtype
) -> Iterator[Batch]:
    """All rows, ``size`` at a time."""
    wide = torch.promote_types(dtype, torch.float32)
    while rows := list(islice(read, size)):
        ids = torch.tensor([number for row in rows for number in row.ids])
        positions = torch.cat([consecutive(len(row.ids), start=row.start) for row in rows])
        x = look_up(ids).to(wide)
        distinct, places = positions.unique(return_inverse=True)
        table = encoding.table(distinct, dtype=wide)[places]
        values = encoding.encode(x, table).to(dtype)
        if not values.isfinite().all():
            raise UserError(f"some numbers are infinite or NaN in {dtype}; give a wider --dtype")
        yield Batch(rows, ids, positions, x, table, values)


def _parameters(asked: Any, dim: int, padding: int) -> dict[str, Any]:
    same = ("base", "convention", "dtype", "seed", "max_length")
    return {
        **{name: getattr(asked, name) for name in same},
        "posenc": metadata.version("posenc"),
        "encoding": "Sinusoidal",
        "dim": dim,
        "scale": "sqrt_dim" if asked.scale else "none",
        "embeddings": str(asked.embeddings or "random"),
        "tokenizer": str(asked.tokenizer or asked.vocabulary or "trained on the text"),
        "padding_id": padding,
    }


def _write(asked: Any, manifest: Manifest, made: Iterable[Batch]) -> None:
    output = asked.output
    if output is None:
        return write_text(sys.stdout.buffer, manifest, made, asked.format)
    if output.suffix in BINARY:
        # A map of a file that its disk cannot hold would end the process without a word.
        size = sum(dtype.itemsize * prod(shape) for dtype, shape in manifest.arrays().values())
        size *= 1 if output.suffix == ".safetensors" else 2
        if size > (free := shutil.disk_usage(output.absolute().parent).free):
            raise UserError(f"{output} would take {size:,} bytes; its disk has {free:,} left")
    with placed(output) as file:
        if output.suffix == ".safetensors":
            write_safetensors(file, manifest, made)
        elif output.suffix == ".npz":
            write_npz(file, manifest, made, output.resolve().parent)
        else:
            write_text(file, manifest, made, output.suffix[1:])
    of = f"{manifest.tokens:,} vectors of {manifest.dim}, {asked.dtype}"
    read = f"{manifest.sentences:,} sentences, {manifest.rows:,} rows"
    unknown = f", {manifest.unknown:,} unknown words" if manifest.unknown else ""
    print(f"wrote {output}: {of}; {read}{unknown}; {decimal(output.stat().st_size)}")


def _show(batch: Batch, encoding: Sinusoidal, manifest: Manifest) -> None:
    """Token, id, embedding, encoding and their sum of the first tokens."""
    about, more = manifest.parameters, 0
    known = {number: word for word, number in manifest.words.items()}
    lines = [row.line for row in batch.rows for _ in row.ids]
    places = list(zip(lines, batch.positions.tolist(), batch.ids.tolist(), strict=True))[:SHOWN]
    words = [known.get(token, "")[:14] for _, _, token in places]
    told = [[w, *map(str, place)] for w, place in zip(words, places, strict=True)]
    grid(["token", "line", "position", "id"], told, left=[0])
    vectors = {
        "embedding": batch.embeddings * (encoding.factor or 1.0),
        "+ encoding": batch.table,
        "= sum": batch.values,
    }
    for name, values in vectors.items():
        numbers = ([number(x, 3) for x in row] for row in values[:SHOWN].tolist())
        rows = [[word, *row] for word, row in zip(words, numbers, strict=True)]
        more = grid([name.ljust(10), *map(str, range(manifest.dim))], rows, left=[0])
    origin = "seeded random vectors" if about["embeddings"] == "random" else about["embeddings"]
    scaled = ", times sqrt(dim)" if about["scale"] != "none" else ""
    print(f"embeddings: {origin}{scaled}; encoding: {about['convention']}, base {about['base']:g}.")
    if len(told) < manifest.tokens:
        print(f"{len(told)} of {manifest.tokens} tokens; --output or --format csv gives all.")
    if more:
        of = f"{manifest.dim - more} of {manifest.dim} dimensions"
        print(f"{of}; --format csv or json gives all.")
