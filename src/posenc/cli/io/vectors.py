"""Vectors of tokens, with positions added, some rows at a time."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

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
        held: Any = np.load(file, mmap_mode="r")
        floats = held.dtype.kind == "f"

        def look_up(ids: Tensor) -> Tensor:
            return torch.from_numpy(held[ids.numpy()].astype(np.float64))
    elif file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as opened:
            names = list(opened.keys())
            if name not in names and (name is not None or len(names) > 1):
                raise UserError(f"{file} has no tensor {name}; --tensor takes {', '.join(names)}")
            held = opened.get_tensor(name or names[0])
        floats, look_up = held.dtype.is_floating_point, held.__getitem__
    else:
        raise UserError(f"{file}: --embeddings takes .safetensors or .npy")
    if not floats or held.ndim != 2:
        told = "expected floating-point numbers [tokens, dim]"
        raise UserError(f"{file} holds {held.dtype} of shape {list(held.shape)}; {told}")
    return Vectors(held.shape[0], held.shape[1], look_up)


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
    wide = torch.promote_types(dtype, torch.float32)
    while rows := list(islice(read, size)):
        ids = torch.tensor([number for row in rows for number in row.ids])
        positions = torch.cat([consecutive(len(row.ids), start=row.start) for row in rows])
        x = vectors.look_up(ids).to(wide)
        distinct, places = positions.unique(return_inverse=True)
        table = encoding.table(distinct, dtype=wide)[places]
        values = encoding.encode(x, table).to(dtype)
        if not values.isfinite().all():
            raise UserError(f"some numbers are infinite or NaN in {dtype}; give a wider --dtype")
        yield Batch(rows, ids, positions, x, table, values)
