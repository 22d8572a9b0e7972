"""csv and json: one token a line, one row a line; ragged, so nothing is padded."""

import csv
import json
from collections.abc import Iterator
from typing import BinaryIO

from posenc.cli.io.digits import digits
from posenc.cli.io.writers.batch import Batch, Manifest


class CsvWriter:
    """One token a line: row, line, position, token, id, then its numbers.

    Args:
        file: Takes bytes, UTF-8.
        manifest: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, manifest: Manifest):
        self.file, self.row = file, 0
        self.tokens = {number: token for token, number in manifest.words.items()}
        self.csv = csv.writer(_Encoded(file), lineterminator="\n")
        numbers = [f"dim_{number}" for number in range(manifest.dim)]
        self.csv.writerow(["row", "line", "position", "token", "id", *numbers])

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for line, positions, ids, numbers in _rows(batch):
            for position, number, vector in zip(positions, ids, numbers, strict=True):
                token = self.tokens.get(number, "")
                self.csv.writerow([self.row, line, position, token, number, *vector])
            self.row += 1

    def close(self) -> None:
        """Nothing belongs at the end."""
        self.file.flush()

    def abandon(self) -> None:
        """Holds nothing but the file."""


class JsonWriter:
    """One object: the parameters, the vocabulary, and the sentences, a row of text each.

    Args:
        file: Takes bytes, UTF-8.
        manifest: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, manifest: Manifest):
        self.file, self.before = file, "\n"
        self.tokens = {number: token for token, number in manifest.words.items()}
        about = {"parameters": manifest.parameters, "vocabulary": manifest.words}
        opening = json.dumps(about, ensure_ascii=False)[:-1]
        self._write(f'{opening}, "sentences": [')

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for line, positions, ids, numbers in _rows(batch):
            tokens = [self.tokens.get(number, "") for number in ids]
            about = {"line": line, "positions": positions, "tokens": tokens, "ids": ids}
            vectors = ", ".join(f"[{', '.join(vector)}]" for vector in numbers)
            opening = json.dumps(about, ensure_ascii=False)[:-1]
            self._write(f'{self.before}{opening}, "values": [{vectors}]}}')
            self.before = ",\n"

    def close(self) -> None:
        """Ends the list and the object."""
        self._write("\n]}\n")
        self.file.flush()

    def abandon(self) -> None:
        """Holds nothing but the file."""

    def _write(self, text: str) -> None:
        self.file.write(text.encode())


class _Encoded:
    """What ``csv`` writes to: text in, UTF-8 bytes on."""

    def __init__(self, file: BinaryIO):
        self.file = file

    def write(self, text: str) -> int:
        return self.file.write(text.encode())


def _rows(batch: Batch) -> Iterator[tuple[int, list[int], list[int], list[list[str]]]]:
    """Line, positions, ids and numbers of each row."""
    lengths = batch.lengths.tolist()
    parts = zip(
        batch.lines.tolist(),
        batch.positions.split(lengths),
        batch.ids.split(lengths),
        batch.values.split(lengths),
        strict=True,
    )
    for line, positions, ids, values in parts:
        yield line, positions.tolist(), ids.tolist(), digits(values)
