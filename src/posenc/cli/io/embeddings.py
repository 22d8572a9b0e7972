"""Vectors of tokens: the user's own from a file, or seeded random ones."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from posenc.cli.errors import UserError
from posenc.transformer import TokenEmbedding

HELD = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""What vectors are held in; fewer bits would be quantized ones, without their scales."""


@dataclass(frozen=True)
class Vectors:
    """Where the vectors of tokens come from.

    Attributes:
        tokens: How many tokens have one.
        dim: Their width.
        look_up: From ids [*shape] to vectors [*shape, dim].
    """

    tokens: int
    dim: int
    look_up: Callable[[Tensor], Tensor]


def random_vectors(tokens: int, dim: int, seed: int, padding: int | None) -> Vectors:
    """Seeded random vectors: those of a seed and an id are the same again.

    On processors with other instructions torch draws some of them an ulp apart.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        embedding = TokenEmbedding(tokens, dim, padding_idx=padding)
    return Vectors(tokens, dim, embedding)


def vectors_from(file: Path, tensor: str | None) -> Vectors:
    """The rows of a matrix in a .safetensors or .npy file, read where they are needed.

    Raises:
        UserError: There is no such matrix, or the file is of another kind.
    """
    if file.is_dir():
        raise UserError(f"{file} is a folder; give the --embeddings in it")
    if not file.is_file():
        raise UserError(f"{file}: no such file; give the --embeddings that you have")
    readers = {".safetensors": _from_safetensors, ".npy": _from_npy}
    if file.suffix not in readers:
        raise UserError(f"{file}: --embeddings takes {' or '.join(readers)}")
    matrix, look_up = readers[file.suffix](file, tensor)
    if len(matrix) != 2 or 0 in matrix:
        raise UserError(f"{file} has shape {list(matrix)}; expected [tokens, dim]")
    tokens, dim = matrix
    return Vectors(tokens, dim, lambda ids: _finite(look_up(ids), file))


def _finite(vectors: Tensor, file: Path) -> Tensor:
    if not vectors.isfinite().all():
        raise UserError(f"{file} holds infinities or NaN; give finite vectors")
    return vectors


def _from_npy(file: Path, _tensor: str | None) -> tuple[tuple[int, ...], Callable]:
    import numpy as np

    try:
        matrix = np.lib.format.open_memmap(file, mode="r")
    except (ValueError, EOFError) as error:
        raise UserError(f"{file} is no .npy file of numbers: {error}") from None
    kind = matrix.dtype.newbyteorder("=")
    if kind.kind != "f" or kind.itemsize > 8:
        raise UserError(f"{file} holds {kind}; expected floating-point numbers of 16 to 64 bits")
    return matrix.shape, lambda ids: torch.from_numpy(matrix[ids.numpy()].astype(kind))


def _from_safetensors(file: Path, tensor: str | None) -> tuple[tuple[int, ...], Callable]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            names = list(opened.keys())
            matrix = opened.get_tensor(_chosen(file, names, tensor))
    except SafetensorError as error:
        raise UserError(f"{file} is no safetensors file: {error}") from None
    if matrix.dtype not in HELD:
        raise UserError(f"{file} holds {matrix.dtype}; expected floating-point numbers")
    return tuple(matrix.shape), lambda ids: matrix[ids]


def _chosen(file: Path, names: list[str], tensor: str | None) -> str:
    if tensor is None and len(names) == 1:
        return names[0]
    if tensor is None:
        raise UserError(f"{file} holds {len(names)} tensors; choose with --tensor: {_few(names)}")
    if tensor not in names:
        raise UserError(f"{file} has no tensor {tensor!r}; it has {_few(names)}")
    return tensor


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
