"""What may be done with a tensor right now.

Torch runs the same code in many ways: eagerly, compiling, exporting, tracing, inside the transforms
of ``torch.func``, on tensors that are fake or have no memory. Code that depends on it asks here.
"""

import torch
from torch import Tensor, nn
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch.autograd import forward_ad
from torch.compiler import is_compiling, is_dynamo_compiling, is_exporting

_transforms = torch._C._are_functorch_transforms_active
_trace = torch._C._get_tracing_state
_batched = _functorch.is_batchedtensor

PLAIN = (Tensor, nn.Parameter, nn.Buffer)
"""Types whose objects are nothing but tensors; a subclass may mean anything."""

WORKING = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}
"""The dtypes of content, and those in which encodings meet it."""


def transformed() -> bool:
    """Whether torch.func, or forward-mode differentiation, transforms what runs."""
    return _transforms() or forward_ad._current_level >= 0


def plain(*tensors: Tensor) -> bool:
    """Whether these are tensors and no subclass, and torch neither transforms nor exports."""
    if _transforms() or forward_ad._current_level >= 0 or _trace() is not None:
        return False
    if torch.compiler._is_exporting_flag:
        return False
    for x in tensors:  # noqa: SIM110 (a generator would take longer than a kernel)
        if type(x) not in PLAIN:
            return False
    return True


def eager() -> bool:
    """Whether operations run as they are called, seen by nobody but autograd."""
    return not (is_dynamo_compiling() or torch._C._len_torch_dispatch_stack()) and plain()


def may_look(x: Tensor) -> bool:
    """Whether the values of ``x`` are known and may decide what happens next."""
    if is_dynamo_compiling() or torch._C._len_torch_dispatch_stack() or _trace() is not None:
        return False
    if type(x) not in PLAIN or x.is_meta:
        return False
    wrapped = _functorch.is_functorch_wrapped_tensor(x) or _functorch.is_legacy_batchedtensor(x)
    return not (wrapped and _mapped(x))


def _mapped(x: Tensor) -> bool:
    """Whether ``vmap`` maps over ``x``, or over what other transforms have wrapped in it."""
    while _functorch.is_functorch_wrapped_tensor(x):
        if _batched(x):
            return True
        x = _functorch.get_unwrapped(x)
    return _functorch.is_legacy_batchedtensor(x)


def graph_looks(*tensors: Tensor) -> bool:
    """Whether a graph is being made that can look at these itself, by ``demand``, as it runs."""
    if not is_compiling():
        return False
    known = is_exporting() or all(type(x) in PLAIN for x in tensors)  # exports fake all of them
    devices = {x.device.type for x in tensors}
    return known and devices <= {"cpu", "cuda"} and not any(map(_batched, tensors))


def demand(holds: Tensor, words: str) -> None:
    """Write into a graph that this must hold each time it runs, or it ends with a RuntimeError."""
    torch._assert_async(holds, words)


def recorded(*tensors: Tensor | None) -> bool:
    """Whether autograd records what is done with these."""
    if not torch.is_grad_enabled():
        return False
    return any(x is not None and x.requires_grad for x in tensors)


def captured(x: Tensor) -> bool:
    """Whether what runs is recorded to run again, when a random key would be the same each time."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def hooked(module: nn.Module) -> bool:
    """Whether hooks wait for a call of this module, or it has a forward pass of its own."""
    forward = module._forward_hooks or module._forward_pre_hooks
    backward = module._backward_hooks or module._backward_pre_hooks
    return bool(forward or backward or "forward" in module.__dict__)


def has_float64(device: torch.device) -> bool:
    """Whether a device has float64; Apple's GPUs have none."""
    return device.type != "mps"


def where_float64(device: torch.device) -> torch.device:
    """The device, or the CPU where that has no float64."""
    return device if has_float64(device) else torch.device("cpu")


def widest(device: torch.device) -> torch.dtype:
    """float64, or float32 where there is none: for what is rounded once more."""
    return torch.float32 if device.type == "mps" else torch.float64


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which an encoding meets content of ``dtype``: float32 at least."""
    wide = WORKING.get(dtype)
    if wide is not None:
        return wide
    if dtype.is_floating_point:  # torch promotes eight bits to no other
        raise TypeError(f"Content is {dtype}; posenc encodes float16, bfloat16, float32, float64.")
    return torch.promote_types(dtype, torch.float32)


def floating(dtype: torch.dtype | None) -> torch.dtype:
    """The dtype of a table: float32, unless another is asked for that can hold it."""
    if dtype is not None and dtype not in WORKING:
        raise TypeError(f"dtype is {dtype}; a table is float16, bfloat16, float32 or float64.")
    return dtype or torch.float32
