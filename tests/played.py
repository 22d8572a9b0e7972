"""A device without float64, played by the CPU: what would fail on Apple's GPUs fails here too.

Its tensors say that they lie on ``mps``, are wrapped around tensors of the CPU, and each operation
passes through here. A float64 anywhere is the TypeError that torch raises there, and so is a tensor
of the CPU among those of the device, unless it is a single number.
"""

from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_iter, tree_map_only

from posenc import guards

DEVICE = torch.device("mps")
MISSING = (torch.float64, torch.complex128)
FROM_OTHERS = {"copy_", "_to_copy", "index", "index_put_", "_index_put_impl_"}


class Played(Tensor):
    """A tensor on the device."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Played":
        if inner.dtype in MISSING:
            raise TypeError(f"{DEVICE} has no {inner.dtype}")
        return Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
        )  # fmt: skip

    def __init__(self, inner: Tensor):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    # What Python asks of them: torch itself would look for the device's library.
    device = property(lambda self: DEVICE)  # type: ignore[assignment]
    is_mps = property(lambda self: True)  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        if name not in FROM_OTHERS:
            for given in tree_iter((args, kwargs)):
                if isinstance(given, Tensor) and not isinstance(given, Played) and given.ndim:
                    raise RuntimeError(
                        f"{name}: a tensor on {given.device} among those on {DEVICE}"
                    )
        bare_args, bare_kwargs = tree_map_only(Played, lambda x: x.inner, (args, kwargs))
        if "device" in bare_kwargs:
            bare_kwargs["device"] = torch.device("cpu")
        made = func(*bare_args, **bare_kwargs)
        made = tree_map_only(Tensor, Played, made)
        return return_and_correct_aliasing(func, args, kwargs, made)

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.inner.untyped_storage()

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def __repr__(self) -> str:
        return f"Played({self.inner!r})"


class _Moved(torch.autograd.Function):
    """To the device, or away from it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.leaves = isinstance(x, Played)
        return x.inner.detach().clone() if ctx.leaves else Played(x.detach().clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return Played(grad) if ctx.leaves else grad.inner


class Playing(TorchFunctionMode):
    """Within it, ``mps`` is there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "to" and isinstance(args[0], Tensor):
            return _to(*args, **kwargs)
        if name in ("cpu", "tolist", "numpy") and isinstance(args[0], Played):
            near = _Moved.apply(args[0])
            return near if name == "cpu" else getattr(near, name)(*args[1:], **kwargs)
        if name == "new_tensor" and isinstance(args[0], Played):
            kwargs = {"dtype": args[0].dtype, "device": DEVICE, **kwargs}
            func, args = torch.tensor, args[1:]
        asked = kwargs.get("device")
        if asked is not None and torch.device(asked).type == DEVICE.type:
            return Played(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


def _to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype)
    kwargs.pop("copy", None)
    device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
    leaves = isinstance(x, Played) and device is not None and device.type == "cpu"
    comes = not isinstance(x, Played) and device is not None and device.type == DEVICE.type
    if comes and dtype is not None:  # what the device lacks is cast before
        x = Tensor.to(x, dtype)
    if leaves and dtype in MISSING:
        raise TypeError(f"{DEVICE} casts to no {dtype} on the way. Move first, then cast.")
    if comes or leaves:
        x = _Moved.apply(x)  # type: ignore[assignment]
    return x if dtype is None or dtype == x.dtype else Tensor.to(x, dtype)


@contextmanager
def playing():
    """There is a device ``mps``, whose tensors are as good as any."""
    plain, overwrites = guards.PLAIN, torch.__future__.get_overwrite_module_params_on_conversion()
    guards.PLAIN = (*plain, Played)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with Playing():
            yield DEVICE
    finally:
        guards.PLAIN = plain
        torch.__future__.set_overwrite_module_params_on_conversion(overwrites)
