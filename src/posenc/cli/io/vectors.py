"""Vectors of tokens, with positions added, some rows at a time."""

from collections.abc import Callable, Iterator
from itertools import islice
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
    """Some rows, and their tokens one after the other: vectors are ``[tokens, dim]``."""

    rows: list[Row]
    ids: Tensor
    positions: Tensor
    embeddings: Tensor  # without positions
    table: Tensor  # what positions say
    values: Tensor  # both together


def batches(
    read: Iterator[Row], size: int, vectors: Vectors, encoding: Sinusoidal, dtype: torch.dtype
) -> Iterator[Batch]:
    """All rows, ``size`` at a time."""
    while rows := list(islice(read, size)):
        with torch.no_grad():
            yield _batch(rows, vectors, encoding, dtype)


def _batch(rows: list[Row], vectors: Vectors, encoding: Sinusoidal, dtype: torch.dtype) -> Batch:
    ids = torch.tensor([number for row in rows for number in row.ids])
    positions = torch.cat([consecutive(len(row.ids), start=row.start) for row in rows])
    wide = torch.promote_types(dtype, torch.float32)
    x = vectors.look_up(ids).to(wide)
    distinct, places = positions.unique(return_inverse=True)
    table = encoding.table(distinct, dtype=wide)[places]
    values = encoding.encode(x, table).to(dtype)
    if not values.isfinite().all():
        raise UserError(f"some numbers are infinite or NaN in {dtype}; give a wider --dtype")
    return Batch(rows, ids, positions, x, table, values)
