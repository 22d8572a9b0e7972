"""Files that grow batch by batch and never stand in memory as a whole."""

import csv
import io
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from posenc.cli.encodings import digits
from posenc.cli.errors import UserError
from posenc.cli.tokens import Row
from posenc.inspection.safetensors_header import Entry, Header

NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
         torch.int64: "I64", torch.bool: "BOOL"}  # fmt: skip


class Batch(NamedTuple):
    """Some rows, and their tokens one after the other: vectors are ``[tokens, dim]``."""

    rows: list[Row]
    ids: Tensor
    positions: Tensor
    embeddings: Tensor  # without positions
    table: Tensor  # what positions say
    values: Tensor  # both together


@dataclass
class Manifest:
    """What is known before the first batch."""

    dim: int
    dtype: torch.dtype  # of the vectors
    padded: bool  # whether rows are padded to the longest, or ragged
    parameters: dict[str, Any]  # how the numbers came about; saved beside them
    words: dict[str, int]  # every token with its id
    rows: int = 0
    tokens: int = 0
    longest: int = 0  # tokens of the longest row
    sentences: int = 0
    unknown: int = 0  # words that the vocabulary lacks

    def count(self, rows: Iterable[Row], unknown: int | None) -> None:
        """Counts them, where ``unknown`` is the id of words that the vocabulary lacks."""
        for row in rows:
            self.rows += 1
            self.tokens += len(row.ids)
            self.longest = max(self.longest, len(row.ids))
            self.sentences += row.start == 0
            self.unknown += row.ids.count(unknown)  # type: ignore[arg-type]

    def arrays(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        """dtype and shape of each array of a binary file, the widest numbers first."""
        rows, wide = self.rows, torch.int64
        each = (rows, self.longest) if self.padded else (self.tokens,)
        counts = {"lengths": (wide, (rows,))} if self.padded else {"offsets": (wide, (rows + 1,))}
        mask = {"mask": (torch.bool, each)} if self.padded else {}
        common = {"lines": (wide, (rows,)), "positions": (wide, each), "ids": (wide, each)}
        return {**counts, **common, "values": (self.dtype, (*each, self.dim)), **mask}


def write_safetensors(file: BinaryIO, manifest: Manifest, batches: Iterable[Batch]) -> None:
    """The header, and behind it every array in its place, filled by way of a map of the file."""
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in manifest.parameters.items()}
    texts["vocabulary"] = json.dumps(manifest.words, ensure_ascii=False)
    entries, end, arrays = {}, 0, manifest.arrays()
    for name, (dtype, shape) in arrays.items():
        start, end = end, end + dtype.itemsize * prod(shape)
        entries[name] = Entry(NAMES[dtype], shape, start, end)
    header = Header(entries, texts, 0)
    file.write(header.encoded())
    file.flush()
    begin = file.tell()
    file.truncate(begin + end)
    data = torch.from_numpy(np.memmap(file, np.uint8, "r+", begin, (end,)))  # type: ignore[call-overload]
    parts = data.split([entry.end - entry.begin for entry in entries.values()])
    held = {
        name: part.view(dtype).view(shape)
        for (name, (dtype, shape)), part in zip(arrays.items(), parts, strict=True)
    }
    fill(held, manifest, batches)


def write_npz(file: BinaryIO, manifest: Manifest, batches: Iterable[Batch], folder: Path) -> None:
    """By way of .npy files in ``folder``, which has the room: an archive grows at its end alone."""
    if manifest.dtype == torch.bfloat16:
        raise UserError("npz cannot hold bfloat16; write .safetensors, or give --dtype float32")
    about = json.dumps({**manifest.parameters, "vocabulary": manifest.words}, ensure_ascii=False)
    held: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".posenc-") as waiting:
        for name, (dtype, shape) in manifest.arrays().items():
            kind, path = str(dtype).removeprefix("torch."), f"{waiting}/{name}.npy"
            held[name] = np.lib.format.open_memmap(path, "w+", kind, shape)
        fill({name: torch.from_numpy(x) for name, x in held.items()}, manifest, batches)
        np.savez(file, **held, metadata=np.array(about))


def fill(held: dict[str, Tensor], manifest: Manifest, batches: Iterable[Batch]) -> None:
    """Puts the rows of every batch into their places."""
    row = token = 0
    for batch in batches:
        lengths = torch.tensor([len(each.ids) for each in batch.rows])
        rows = slice(row, row + len(lengths))
        held["lines"][rows] = torch.tensor([each.line for each in batch.rows])
        if manifest.padded:
            where, place = rows, torch.arange(manifest.longest) < lengths.unsqueeze(1)
            held["lengths"][rows], held["mask"][rows] = lengths, place
            held["ids"][rows] = manifest.parameters["padding_id"]
        else:
            where, place = slice(token, token + len(batch.ids)), slice(None)
            held["offsets"][row + 1 : rows.stop + 1] = token + lengths.cumsum(0)
        for name in ("ids", "positions", "values"):
            held[name][where][place] = getattr(batch, name)
        row, token = rows.stop, token + len(batch.ids)


def write_text(file: BinaryIO, manifest: Manifest, batches: Iterable[Batch], form: str) -> None:
    """csv has a line for each token; json is one object with a line for each row."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer, count = csv.writer(text, lineterminator="\n"), 0
    words = {number: word for word, number in manifest.words.items()}
    about = {"parameters": manifest.parameters, "vocabulary": manifest.words}
    if form == "csv":
        numbers = [f"dim_{number}" for number in range(manifest.dim)]
        writer.writerow(["row", "line", "position", "token", "id", *numbers])
    else:
        text.write(f'{json.dumps(about, ensure_ascii=False)[:-1]}, "sentences": [')
    for batch in batches:
        parts = batch.values.split([len(row.ids) for row in batch.rows])
        for (line, start, ids), part in zip(batch.rows, parts, strict=True):
            tokens = [words.get(number, "") for number in ids]
            positions = list(range(start, start + len(ids)))
            if form == "csv":
                for *told, vector in zip(positions, tokens, ids, digits(part), strict=True):
                    writer.writerow([count, line, *told, *vector])
            else:
                row = {"line": line, "positions": positions, "tokens": tokens, "ids": ids}
                row["values"] = [list(map(float, vector)) for vector in digits(part)]
                text.write("," * (count > 0) + "\n" + json.dumps(row, ensure_ascii=False))
            count += 1
    if form == "json":
        text.write("\n]}\n")
    text.detach()
