"""Three embeddings summed and normalized in C: ``sources/embedding_norm.c``."""

import ctypes
from collections.abc import Callable
from functools import cache
from struct import Struct

import torch
from torch import Tensor

from posenc._guards import dense, eager
from posenc.kernels.addition.strides import FORMATS
from posenc.kernels.library import library

NORMED = Struct("=4q18q3qd")
"""``struct normed`` of embedding_norm.c."""

DONE, NO_SUCH_ROW = 0, 16


@cache
def _native() -> Callable[[bytes, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_embedding_norm.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    return native.posenc_embedding_norm


def embedding_norm(
    ids: tuple[Tensor, Tensor, Tensor],
    weights: tuple[Tensor, Tensor, Tensor],
    gamma: Tensor,
    beta: Tensor,
    eps: float,
) -> Tensor | None:
    """``posenc.kernels.embedding_norm.operator``, or ``None`` where C does not take it.

    Args:
        ids: int64, each ``[batch, seq]`` or ``[seq]``; the first has all axes.
        weights: ``[rows, dim]``, of one dtype.
        gamma: ``[dim]``, of that dtype.
        beta: Likewise.
        eps: What is added to the variance.

    Raises:
        IndexError: An id is not a row of its weights.
    """
    if not eager() or not dense(*ids, *weights, gamma, beta):
        return None
    native = _native()
    if native is None:
        return None
    shape, dtype, width = ids[0].shape, weights[0].dtype, weights[0].shape[-1]
    if dtype not in FORMATS or len(shape) not in (1, 2) or not _alike(weights, gamma, beta):
        return None
    batch, tokens = shape if len(shape) == 2 else (1, *shape)
    parts: list[int] = []
    for which, weight in zip(ids, weights, strict=True):
        over = _steps(which, batch, tokens)
        if over is None:
            return None
        parts += [weight.data_ptr(), which.data_ptr(), weight.shape[0], weight.stride(0), *over]
    made = torch.empty(*shape, width, dtype=dtype, device="cpu")
    # fmt: off
    packed = NORMED.pack(
        FORMATS[dtype][0], batch, tokens, width, *parts,
        gamma.data_ptr(), beta.data_ptr(), made.data_ptr(), eps,
    )
    # fmt: on
    outcome = native(packed, torch.get_num_threads())
    if outcome >= NO_SUCH_ROW:
        rows = weights[outcome - NO_SUCH_ROW].shape[0]
        raise IndexError(
            f"An id is negative or past the last of {rows} vectors. Map what is unknown to an id "
            f"that exists."
        )
    return made if outcome == DONE else None


def _alike(weights: tuple[Tensor, ...], gamma: Tensor, beta: Tensor) -> bool:
    """One dtype, one width, and features side by side."""
    dtype, width = weights[0].dtype, weights[0].shape[-1]
    return all(
        x.dtype is dtype and x.shape[-1] == width and x.stride(-1) == 1 and x.ndim == axes
        for x, axes in ((*[(w, 2) for w in weights], (gamma, 1), (beta, 1)))
    )


def _steps(ids: Tensor, batch: int, tokens: int) -> tuple[int, int] | None:
    """Strides over batch and tokens, if ids are int64 that broadcast to them."""
    if ids.dtype is not torch.int64 or ids.shape[-1:] != (tokens,):
        return None
    if ids.ndim == 1:
        return 0, ids.stride(0)
    if ids.ndim != 2 or ids.shape[0] not in (1, batch):
        return None
    return (ids.stride(0) if ids.shape[0] > 1 else 0), ids.stride(1)
