"""Which tensors may be handed to C: those that are nothing but numbers in memory, right now.

Everything else (compiling, exporting, tracing, functorch's transforms, fake tensors, subclasses,
other devices) takes the reference, which is made of torch's own operations.
"""

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

# Private names, for want of public ones; where a torch lacks one, nothing is handed to C.
_functorch = torch._C._functorch  # pyright: ignore
_transforming = getattr(_functorch, "peek_interpreter_stack", lambda: True)
_traced = getattr(torch._C, "_get_tracing_state", lambda: True)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)

PLAIN = (Tensor, nn.Parameter, nn.Buffer)


def may_look(x: Tensor) -> bool:
    """Whether values may be looked at: not while compiling, on meta, in a subclass, in vmap.

    Example:
        >>> may_look(torch.ones(2)), may_look(torch.ones(2, device="meta"))
        (True, False)
    """
    return not (
        torch.compiler.is_compiling()
        or x.is_meta
        or type(x) is not Tensor
        or torch._C._functorch.is_batchedtensor(x)  # pyright: ignore
    )


def eager() -> bool:
    """Whether operations run as they are called, seen by nobody but autograd.

    Example:
        >>> eager(), torch.func.vmap(lambda x: x * eager())(torch.ones(1))
        (True, tensor([0.]))
    """
    return not (
        is_dynamo_compiling()
        or _modes()  # fake tensors, make_fx, functionalization
        or _transforming() is not None
        or _traced() is not None
        or forward_ad._current_level >= 0
    )


def readable(*tensors: Tensor) -> bool:
    """Whether C may read these by itself: where they are, and whether they have memory, it sees.

    Example:
        >>> x = torch.ones(2)
        >>> readable(x), readable(torch.complex(x, x).conj().imag)
        (True, False)
    """
    for x in tensors:  # noqa: SIM110 (a generator would take twice as long)
        if type(x) not in PLAIN or x.is_neg():
            return False
    return True


def dense(*tensors: Tensor) -> bool:
    """Whether all are tensors of this process's memory, and not lazily negated.

    Tensors that are sparse, or of torch's older vmap, have no strides or no address; asking for
    these raises a RuntimeError.

    Example:
        >>> dense(torch.ones(2)), dense(torch.ones(2), torch.ones(2, device="meta"))
        (True, False)
    """
    for x in tensors:  # noqa: SIM110 (a generator would take twice as long)
        if type(x) not in PLAIN or not x.is_cpu or x.is_neg():
            return False
    return True
