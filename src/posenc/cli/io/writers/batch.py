"""What is written: the manifest of the whole, and one batch of rows after the other."""

from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import torch
from torch import Tensor

Arrays = dict[str, tuple[torch.dtype, tuple[int, ...]]]


@dataclass(frozen=True)
class Manifest:
    """What is known before the first batch.

    Attributes:
        rows: Number of rows.
        tokens: Tokens of all rows together.
        longest: Tokens of the longest row.
        dim: Width of a vector.
        dtype: dtype of the vectors.
        padded: Whether rows are padded to the longest, or ragged.
        parameters: How the numbers came about; saved beside them.
        words: Every token with its id.
    """

    rows: int
    tokens: int
    longest: int
    dim: int
    dtype: torch.dtype
    padded: bool
    parameters: dict[str, Any]
    words: dict[str, int]

    def arrays(self) -> Arrays:
        """Name, dtype and shape of each array that a binary file holds.

        The wide dtypes come first, so that in one stretch of memory each array starts at a
        multiple of its own size.
        """
        int64 = torch.int64
        if not self.padded:
            return {
                "offsets": (int64, (self.rows + 1,)),
                "lines": (int64, (self.rows,)),
                "positions": (int64, (self.tokens,)),
                "ids": (int64, (self.tokens,)),
                "values": (self.dtype, (self.tokens, self.dim)),
            }
        rectangle = (self.rows, self.longest)
        return {
            "lengths": (int64, (self.rows,)),
            "lines": (int64, (self.rows,)),
            "positions": (int64, rectangle),
            "ids": (int64, rectangle),
            "values": (self.dtype, (*rectangle, self.dim)),
            "mask": (torch.bool, rectangle),
        }

    def bytes(self, name: str | None = None) -> int:
        """Size of an array, or of all arrays together."""
        chosen = self.arrays() if name is None else {name: self.arrays()[name]}
        return sum(dtype.itemsize * prod(shape) for dtype, shape in chosen.values())


@dataclass(frozen=True)
class Batch:
    """Some rows, one after the other, without padding.

    Attributes:
        values: [tokens, dim].
        ids: [tokens].
        positions: [tokens], each token's position in its line.
        lengths: [rows], tokens of each row.
        lines: [rows], the line of the text, from 1.
        before: Tokens of all batches before.
    """

    values: Tensor
    ids: Tensor
    positions: Tensor
    lengths: Tensor
    lines: Tensor
    before: int

    def array(self, name: str, manifest: Manifest) -> Tensor:
        """One array of the manifest, as far as these rows reach."""
        if name == "offsets":
            return self.before + self.lengths.cumsum(0)
        if name in ("lengths", "lines") or not manifest.padded:
            return getattr(self, name)
        mask = torch.arange(manifest.longest) < self.lengths.unsqueeze(1)
        if name == "mask":
            return mask
        flat = getattr(self, name)
        fill = manifest.parameters["padding_id"] if name == "ids" else 0
        padded = torch.full((*mask.shape, *flat.shape[1:]), fill, dtype=flat.dtype)
        padded[mask] = flat
        return padded


class Writer(Protocol):
    """Takes batches in order; what it wrote is complete only after ``close``."""

    def add(self, batch: Batch) -> None:
        """Writes the rows of ``batch`` after those before."""

    def close(self) -> None:
        """Writes what belongs at the end."""

    def abandon(self) -> None:
        """Lets go of everything: what was written will not be kept."""


def raw(tensor: Tensor) -> bytes:
    """The bytes of ``tensor``, whatever its dtype.

    Example:
        >>> raw(torch.tensor([1.0, 2.0], dtype=torch.bfloat16)).hex()
        '803f0040'
    """
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


FIRST_OFFSET = raw(torch.zeros(1, dtype=torch.int64))
"""What ``offsets`` begins with, before any row."""
