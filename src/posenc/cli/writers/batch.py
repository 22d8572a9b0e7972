"""What is written: the plan of the whole, and one batch of rows after the other."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """What is known before the first batch.

    Attributes:
        rows: Number of rows.
        longest: Tokens of the longest row.
        dim: Width of a vector.
        dtype: dtype of the vectors.
        parameters: How the numbers came about; saved beside them.
        words: Every token with its id.
    """

    rows: int
    longest: int
    dim: int
    dtype: torch.dtype
    parameters: dict[str, Any]
    words: dict[str, int]

    def arrays(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        """Name, dtype and shape of each array that a binary file holds."""
        grid = (self.rows, self.longest)
        return {
            "lengths": (torch.int64, (self.rows,)),
            "lines": (torch.int64, (self.rows,)),
            "starts": (torch.int64, (self.rows,)),
            "ids": (torch.int64, grid),
            "encoded": (self.dtype, (*grid, self.dim)),
            "mask": (torch.bool, grid),
        }

    def bytes(self) -> int:
        """Size of all arrays together."""
        return sum(
            dtype.itemsize * torch.Size(shape).numel() for dtype, shape in self.arrays().values()
        )


@dataclass(frozen=True)
class Batch:
    """Some rows, padded to the longest of them.

    Attributes:
        encoded: [rows, seq, dim], zero where the mask is False.
        ids: [rows, seq].
        mask: [rows, seq], True at tokens and False at padding.
        lengths: [rows], tokens of each row.
        lines: [rows], the line of the text, from 1.
        starts: [rows], position of the first token of the row in its line.
    """

    encoded: Tensor
    ids: Tensor
    mask: Tensor
    lengths: Tensor
    lines: Tensor
    starts: Tensor

    def with_encoded(self, encoded: Tensor) -> "Batch":
        """The same rows with their vectors."""
        return replace(self, encoded=encoded)

    def array(self, name: str, longest: int, padding: int) -> Tensor:
        """One array, padded on the right to ``longest`` tokens."""
        array = getattr(self, name)
        missing = longest - array.shape[1] if array.dim() > 1 else 0
        sides = (0, 0, 0, missing) if name == "encoded" else (0, missing)
        value = padding if name == "ids" else 0
        return torch.nn.functional.pad(array, sides, value=value) if missing else array


class Writer(Protocol):
    """Takes batches in order; what it wrote is complete only after ``close``."""

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""

    def close(self) -> None:
        """Writes what belongs at the end."""


def raw(tensor: Tensor) -> bytes:
    """The bytes of ``tensor``, whatever its dtype.

    Example:
        >>> raw(torch.tensor([1.0, 2.0], dtype=torch.bfloat16)).hex()
        '803f0040'
    """
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
