"""``torch.ops.posenc``: what Python adds to operators in C, and when they are called.

The C library registers kernels for the CPU. Here every operator gets its formula in torch's own
operations, for all other devices, and what compilers ask for: the results' shapes. A call goes
past the operators, to the formula, where torch transforms, exports or traces it, and for subclasses
of tensors.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, register_fake

from posenc.guards import WORKING, plain
from posenc.kernels.library import loaded, schemas

LIBRARY = Library("posenc", "FRAGMENT")
NATIVE = not loaded()
if not NATIVE and not hasattr(torch.ops.posenc, "rotary"):
    for schema in schemas():
        LIBRARY.define(schema)

TRITON = find_spec("triton") is not None
"""Whether CUDA has kernels. Elsewhere the formula is what compilers fuse best."""

TABLES = WORKING
"""The dtype of the table that content of each dtype meets in a kernel."""


def serve(x: Tensor, *others: Tensor) -> bool:
    """Whether operators may be called with these: torch runs what is called, or compiles it."""
    return (NATIVE if x.is_cpu else TRITON and x.is_cuda) and plain(x, *others)


def register(
    name: str,
    formula: Callable[..., Any],
    shaped: Callable[..., Any],
    on_cuda: Callable[..., Any] | None = None,
) -> Any:
    """Give an operator its formula, the shapes of its results, and a kernel for CUDA.

    Args:
        name: Of the operator, which C defines.
        formula: The same in torch's own operations.
        shaped: Its results as empty tensors, from the same arguments.
        on_cuda: By Triton, or else the formula.

    Returns:
        What calls it.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if not has(f"posenc::{name}", "CompositeExplicitAutograd"):  # else another copy has done it
        LIBRARY.impl(name, formula, "CompositeExplicitAutograd")
        LIBRARY.impl(name, on_cuda or formula, "CUDA")
        register_fake(f"posenc::{name}", shaped, lib=LIBRARY)
    return getattr(torch.ops.posenc, name).default


def check_devices(*tensors: Tensor) -> None:
    """Refuse tensors of several devices, as kernels would."""
    if len({x.device for x in tensors}) > 1:
        raise ValueError(f"Tensors are on {', '.join(str(x.device) for x in tensors)}; use one.")


ERRORS = {kind.__name__: kind for kind in (IndexError, TypeError, ValueError, RuntimeError)}


def refusal(error: RuntimeError) -> Exception:
    """What an operator refused, as the error that its first word names."""
    kind, colon, words = str(error).partition(": ")
    return ERRORS[kind](words.splitlines()[0]) if colon and kind in ERRORS else error


def written(made: Tensor, out: Tensor | None) -> Tensor:
    """``made``, in ``out`` if that is given; torch would broadcast and cast it in silence."""
    if out is None:
        return made
    if out.shape != made.shape or out.dtype != made.dtype:
        raise ValueError(
            f"out is {out.dtype} {tuple(out.shape)}; it must be {made.dtype} {tuple(made.shape)}."
        )
    return out.copy_(made)
