"""csv and json: one token a line, one row a line; ragged, so nothing is padded."""

import csv
import json
from collections.abc import Iterator
from typing import BinaryIO

import torch

from posenc.cli.writers.batch import Batch, Plan


class CsvWriter:
    """One token a line: row, line, position, token, id, then its numbers.

    Args:
        file: Takes bytes, UTF-8.
        plan: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, plan: Plan):
        self.file, self.row = file, 0
        self.tokens = {number: token for token, number in plan.words.items()}
        self.csv = csv.writer(_Encoded(file), lineterminator="\n")
        numbers = [f"dim_{number}" for number in range(plan.dim)]
        self.csv.writerow(["row", "line", "position", "token", "id", *numbers])

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for line, start, ids, numbers in _unpadded(batch):
            for place, (number, vector) in enumerate(zip(ids, numbers, strict=True)):
                token = self.tokens.get(number, "")
                self.csv.writerow([self.row, line, start + place, token, number, *vector])
            self.row += 1

    def close(self) -> None:
        """Nothing belongs at the end."""
        self.file.flush()


class JsonWriter:
    """One object: the parameters, the vocabulary, and the sentences, a row of text each.

    Args:
        file: Takes bytes, UTF-8.
        plan: Shapes and metadata of the whole.
    """

    def __init__(self, file: BinaryIO, plan: Plan):
        self.file, self.before = file, "\n"
        self.tokens = {number: token for token, number in plan.words.items()}
        about = {"parameters": plan.parameters, "vocabulary": plan.words}
        opening = json.dumps(about, ensure_ascii=False)[:-1]
        self._write(f'{opening}, "sentences": [')

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""
        for line, start, ids, numbers in _unpadded(batch):
            tokens = [self.tokens.get(number, "") for number in ids]
            about = {"line": line, "start": start, "tokens": tokens, "ids": ids}
            vectors = ", ".join(f"[{', '.join(vector)}]" for vector in numbers)
            opening = json.dumps(about, ensure_ascii=False)[:-1]
            self._write(f'{self.before}{opening}, "encoded": [{vectors}]}}')
            self.before = ",\n"

    def close(self) -> None:
        """Ends the list and the object."""
        self._write("\n]}\n")
        self.file.flush()

    def _write(self, text: str) -> None:
        self.file.write(text.encode())


class _Encoded:
    """What ``csv`` writes to: text in, UTF-8 bytes on."""

    def __init__(self, file: BinaryIO):
        self.file = file

    def write(self, text: str) -> int:
        return self.file.write(text.encode())


def _unpadded(batch: Batch) -> Iterator[tuple[int, int, list[int], list[list[str]]]]:
    """Line, start, ids and numbers of each row, as far as it has tokens."""
    for row, length in enumerate(batch.lengths.tolist()):
        numbers = digits(batch.encoded[row, :length])
        yield (
            int(batch.lines[row]),
            int(batch.starts[row]),
            batch.ids[row, :length].tolist(),
            numbers,
        )


def digits(vectors: torch.Tensor) -> list[list[str]]:
    """The shortest digits that read back as the same number of this dtype.

    Example:
        >>> digits(torch.tensor([[0.1, -2.0]]))
        [['0.1', '-2.0']]
    """
    if vectors.dtype == torch.bfloat16:
        vectors = vectors.float()  # Exact; numpy has no bfloat16.
    return [list(map(str, vector)) for vector in vectors.numpy()]
