"""Addition of a table to content in C: ``sources/addition.c``."""

import ctypes
from collections.abc import Callable
from functools import cache
from struct import Struct

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from posenc._guards import dense, eager
from posenc.kernels.addition.strides import Layout, addition_plan
from posenc.kernels.library import library
from posenc.kernels.philox import Dropping

PLACES = Struct("=5q2d2Qq")
"""``struct places`` of addition.c."""

NO_SUCH_ROW, UNFIT, NO_SUCH_ID = 1, 2, 3


@cache
def _native() -> Callable[[bytes, bytes, int], int] | None:
    native = library()
    if native is None:
        return None
    native.posenc_add.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
    return native.posenc_add


def scaled_sum(
    x: Tensor,
    table: Tensor | None,
    *,
    ids: Tensor | None = None,
    positions: Tensor | None = None,
    scale: float | None = None,
    dropping: Dropping | None = None,
    out: Tensor | None = None,
) -> Tensor | None:
    """``addition_reference.scaled_sum`` bit for bit, or ``None`` where C does not take it.

    Nothing is written where it does not. Gradients are the caller's business.

    Args:
        x: Content, or with ``ids`` the vectors ``[rows, dim]`` to look up.
        table: What is added, if anything is.
        ids: Which row of ``x`` each token is.
        positions: Which row of ``table`` each token takes.
        scale: What ``x`` is multiplied with first.
        dropping: Which elements become 0.
        out: Where to write; ``x`` itself adds in place.

    Raises:
        IndexError: A position is not a row of the table, or an id not one of ``x``.
    """
    rescale = 1.0 if dropping is None else dropping.rescale
    return _run(x, table, ids, positions, 1.0 if scale is None else scale, rescale, dropping, out)


def gradient_of_x(
    gradient: Tensor, scale: float | None, dropping: Dropping | None
) -> Tensor | None:
    """``addition_reference.gradient_of_x`` bit for bit, or ``None``."""
    scale = 1.0 if scale is None else scale
    if dropping is None:
        return _run(gradient, None, None, None, scale, 1.0, None, None)
    return _run(gradient, None, None, None, dropping.rescale, scale, dropping, None)


def _run(
    x: Tensor,
    table: Tensor | None,
    ids: Tensor | None,
    positions: Tensor | None,
    scale: float,
    rescale: float,
    dropping: Dropping | None,
    out: Tensor | None,
) -> Tensor | None:
    others = [other for other in (table, ids, positions, out) if other is not None]
    if not eager() or not dense(x, *others) or _batched(x):
        return None
    native = _native()
    if native is None:
        return None
    planned = addition_plan(
        (x.shape, x.stride(), x.dtype),
        _layout(table),
        _layout(out),
        _layout(ids),
        _layout(positions),
    )
    if planned is None:
        return None
    plan, shape = planned
    made = torch.empty(shape, dtype=x.dtype, device="cpu") if out is None else out
    threshold, key = (0, 0) if dropping is None else (dropping.threshold, dropping.key)
    # fmt: off
    places = PLACES.pack(
        x.data_ptr(), _address(table), made.data_ptr(), _address(ids), _address(positions),
        scale, rescale, threshold, key, out is None,
    )
    # fmt: on
    outcome = native(plan, places, torch.get_num_threads())
    if outcome == UNFIT:
        return None
    if outcome == NO_SUCH_ROW:
        raise IndexError(
            "A position is negative or past the last row of the table. Build the table for all "
            "positions that are asked for."
        )
    if outcome == NO_SUCH_ID:
        raise IndexError(
            f"An id is negative or past the last of {x.shape[0]} vectors. Map unknown tokens and "
            f"padding to an id that exists."
        )
    if out is not None:
        increment_version((out,))  # autograd notices what is written behind its back
    return made


# Gradients under ``is_grads_batched`` look like any other tensor, and have no memory.
_batched = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda x: True)  # pyright: ignore


def _layout(x: Tensor | None) -> Layout | None:
    return None if x is None else (x.shape, x.stride(), x.dtype)


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()
