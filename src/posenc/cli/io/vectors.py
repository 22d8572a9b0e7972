"""Vectors of tokens, with positions added, some rows at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.errors import UserError
from posenc.cli.io.tokens import Row
from posenc.inspection.words import word_vectors
from posenc.positions import consecutive

NUMBERS = 1 << 22
"""Numbers of one batch, where --batch-size leaves the choice: 16 MB of float32."""


class Vectors(NamedTuple):
    """Where the vectors of tokens come from: ``look_up`` takes ids ``[n]`` to ``[n, dim]``."""

    tokens: int
    dim: int
    look_up: Callable[[Tensor], Tensor]


def random_vectors(words: dict[str, int], dim: int, seed: int, padding: int | None) -> Vectors:
    """Random vectors, drawn from the words themselves; that of padding is zero."""
    tokens = {number: word for word, number in words.items()}

    def look_up(ids: Tensor) -> Tensor:
        distinct, places = ids.unique(return_inverse=True)
        drawn = word_vectors([tokens[number] for number in distinct.tolist()], dim, seed=seed)
        drawn[distinct == padding] = 0.0
        return drawn[places]

    return Vectors(len(words), dim, look_up)


def vectors_from(file: Path, name: str | None) -> Vectors:
    """The rows of a matrix in a .safetensors or .npy file; of the latter, where they are needed."""
    if file.suffix == ".npy":
        held = np.lib.format.open_memmap(file, mode="r")
        dtype, shape = held.dtype.newbyteorder("="), held.shape
        floats = dtype.kind == "f" and dtype.itemsize <= 8

        def look_up(ids: Tensor) -> Tensor:
            return torch.from_numpy(held[ids.numpy()].astype(dtype))
    elif file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as opened:
            names = list(opened.keys())
            if name not in names and (name is not None or len(names) > 1):
                raise UserError(f"{file} has no tensor {name}; --tensor takes {', '.join(names)}")
            matrix = opened.get_tensor(name or names[0])
        dtype, shape, look_up = matrix.dtype, matrix.shape, matrix.__getitem__
        floats = dtype.is_floating_point and dtype.itemsize > 1
    else:
        raise UserError(f"{file}: --embeddings takes .safetensors or .npy")
    if not floats or len(shape) != 2:
        told = "expected floating-point numbers [tokens, dim]"
        raise UserError(f"{file} holds {dtype} of shape {list(shape)}; {told}")
    return Vectors(shape[0], shape[1], look_up)


class Batch(NamedTuple):
    """Some rows, and their tokens one after the other: values are ``[tokens, dim]``."""

    rows: list[Row]
    ids: Tensor
    positions: Tensor
    values: Tensor


@dataclass(frozen=True)
class Encoded:
    """How rows become vectors: embeddings, what adds the positions, and the dtype of the result."""

    vectors: Vectors
    encoding: Sinusoidal
    dtype: torch.dtype

    def batches(self, rows: Iterable[Row], most: int | None, width: int) -> Iterator[Batch]:
        """All rows, ``most`` at a time, or as many as fit where they are padded to ``width``."""
        held: list[Row] = []
        numbers = 0
        for row in rows:
            cost = max(width, len(row.ids)) * self.vectors.dim
            if held and (len(held) == most if most else numbers + cost > NUMBERS):
                yield self._batch(held)
                held, numbers = [], 0
            held.append(row)
            numbers += cost
        if held:
            yield self._batch(held)

    @torch.no_grad()
    def parts(self, ids: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """The embeddings of some tokens, and the rows of the table that belong to them."""
        wide = torch.promote_types(self.dtype, torch.float32)
        distinct, places = positions.unique(return_inverse=True)
        return self.vectors.look_up(ids).to(wide), self.encoding.table(distinct, dtype=wide)[places]

    @torch.no_grad()
    def _batch(self, rows: list[Row]) -> Batch:
        ids = torch.tensor([number for row in rows for number in row.ids])
        positions = torch.cat([consecutive(len(row.ids), start=row.start) for row in rows])
        x, table = self.parts(ids, positions)
        if not x.isfinite().all():
            raise UserError("the --embeddings hold infinities or NaN; give finite vectors")
        values = self.encoding.encode(x, table).to(self.dtype)
        if not values.isfinite().all():
            kind = str(self.dtype).removeprefix("torch.")
            raise UserError(f"some numbers are beyond {kind}; give a wider --dtype")
        return Batch(rows, ids, positions, values)
