"""What may be done with a tensor right now: the questions that are asked before a kernel runs.

Torch runs the same code in many ways: eagerly, compiling, exporting, tracing, inside functorch's
transforms, on tensors that are fake or have no memory. Kernels want nothing but numbers in memory,
right now; everything else takes the reference, which is made of torch's own operations and so can
be recorded, transformed and differentiated. Who decides asks here, and nowhere else:

======================  =====================================================================
``may_look(x)``         before values decide what happens next (is a position in range?)
``graph_looks(x, …)``   where nobody may look: can the graph itself, by ``demand``, as it runs?
``eager()``             before any kernel: do operations run as they are called?
``transformed()``       before torch trusts ``requires_grad``: does torch.func transform what runs?
``numbers(x, …)``       before an address is asked for: are these nothing but numbers?
``stored(x, …)``        before an address is handed over: is there memory with numbers in it?
``on_cpu(x, …)``        before C: is all of that memory this process's own?
``on_accelerator(…)``   before Triton: is all of it on one device that Triton compiles for?
``kernels_reach(…)``    ``eager()``, and one of these two
``recorded(x, …)``      before a result is handed back: will autograd want its gradient?
``hooked(module)``      before a module's weight is taken without a call of the module
``overridden(module)``  before all weights of a module are taken over by another
``backward_pass()``     before a cache is written to: does a backward pass compute this anew?
``captured(x)``         before a random number is drawn: will what runs now run again?
``has_float64(device)`` before a formula that float32 would spoil
``working_dtype(dtype)`` before content meets a table: float32 at least
``floating(dtype)``     before reals are rounded to a dtype that somebody asked for
``check_dense(x=x, …)`` before anything reads a tensor by rows and columns
``check_tokens(x, …)``  before a layer computes with tokens
======================  =====================================================================

Torch has no public names for some of this. Where one of its private names is gone, the answer is
the careful one: nothing is handed to a kernel, and no value is looked at.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.compiler import is_compiling, is_dynamo_compiling, is_exporting


def _private(module: Any, name: str, careful: Any) -> Any:
    """A function of torch that has no public name, or one that gives the careful answer."""
    return getattr(module, name, lambda *_: careful)


_functorch = getattr(torch._C, "_functorch", None)
_transform = _private(_functorch, "peek_interpreter_stack", careful=True)
_wrapped = _private(_functorch, "is_functorch_wrapped_tensor", careful=None)
_unwrapped = _private(_functorch, "get_unwrapped", careful=None)
_batched = _private(_functorch, "is_batchedtensor", careful=True)
_in_older_vmap = _private(_functorch, "is_legacy_batchedtensor", careful=True)
_trace = _private(torch._C, "_get_tracing_state", careful=True)
_modes = _private(torch._C, "_len_torch_dispatch_stack", careful=1)
_backward_pass = _private(torch._C, "_current_graph_task_id", careful=-1)
_assert_later = _private(torch, "_assert_async", careful=None)

PLAIN = (Tensor, nn.Parameter, nn.Buffer)
"""Types whose objects are nothing but tensors; a subclass may mean anything."""

ACCELERATORS = {"cuda"}
"""What torch calls the devices that Triton compiles for; ROCm's too."""


ASSERTING = {"cpu", "cuda"}
"""What torch calls the devices on which a graph may end with an error of its own."""

WITHOUT_FLOAT64 = {"mps"}
"""What torch calls the devices that have no float64: Apple's GPUs."""


def _in_vmap(x: Tensor | None) -> bool:
    """Whether ``vmap`` maps over ``x``, or over what ``grad`` and others have wrapped in it."""
    while x is not None and (is_wrapped := _wrapped(x)) is not False:
        if is_wrapped is None or _batched(x):
            return True
        x = _unwrapped(x)
    return x is None


def has_float64(device: torch.device) -> bool:
    """Whether a device has float64.

    Example:
        >>> has_float64(torch.device("cpu")), has_float64(torch.device("mps"))
        (True, False)
    """
    return device.type not in WITHOUT_FLOAT64


def where_float64(device: torch.device) -> torch.device:
    """The device, or the CPU where that has no float64.

    Example:
        >>> where_float64(torch.device("cuda")), where_float64(torch.device("mps"))
        (device(type='cuda'), device(type='cpu'))
    """
    return device if has_float64(device) else torch.device("cpu")


def widest(device: torch.device) -> torch.dtype:
    """float64, or float32 where there is none: for what is rounded once more and no further off.

    Example:
        >>> widest(torch.device("cpu")), widest(torch.device("mps"))
        (torch.float64, torch.float32)
    """
    return torch.float64 if has_float64(device) else torch.float32


FLOATING = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which an encoding meets content of ``dtype``: float32 at least.

    Raises:
        TypeError: It is a floating one of fewer than 16 bits, which torch promotes to no other.

    Example:
        >>> working_dtype(torch.bfloat16), working_dtype(torch.float64)
        (torch.float32, torch.float64)
        >>> working_dtype(torch.float8_e4m3fn)
        Traceback (most recent call last):
        ...
        TypeError: Content is torch.float8_e4m3fn; posenc encodes float16, bfloat16, float32 and \
float64. Pass x.to(torch.bfloat16), times its scale if it has one.
    """
    if dtype.is_floating_point and dtype not in FLOATING:
        raise TypeError(
            f"Content is {dtype}; posenc encodes float16, bfloat16, float32 and float64. Pass "
            f"x.to(torch.bfloat16), times its scale if it has one."
        )
    return torch.promote_types(dtype, torch.float32)


def check_tokens(x: Tensor, who: str) -> None:
    """Refuse tokens that are whole, complex, or of fewer than 16 bits.

    Raises:
        TypeError: They are; ``who`` is told.

    Example:
        >>> check_tokens(torch.arange(3), "FeedForward takes")
        Traceback (most recent call last):
        ...
        TypeError: x is torch.int64; FeedForward takes floating tokens [*tokens, dim].
    """
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; {who} floating tokens [*tokens, dim].")
    working_dtype(x.dtype)


def floating(dtype: torch.dtype | None) -> torch.dtype:
    """The dtype of a table: float32, unless another is asked for that can hold it.

    Raises:
        TypeError: It is none of the four: whole numbers would cut reals, and eight bits are
            reached by two roundings.

    Example:
        >>> floating(None), floating(torch.bfloat16)
        (torch.float32, torch.bfloat16)
        >>> floating(torch.int64)
        Traceback (most recent call last):
        ...
        TypeError: dtype is torch.int64; a table of reals is float16, bfloat16, float32 or float64.
    """
    if dtype is None:
        return torch.float32
    if dtype not in FLOATING:
        raise TypeError(
            f"dtype is {dtype}; a table of reals is float16, bfloat16, float32 or float64."
        )
    return dtype


def check_dense(**tensors: Any) -> None:
    """Refuse tensors that are nested, sparse, quantized, or in a layout of their own.

    Raises:
        TypeError: One is; its name is told.

    Example:
        >>> check_dense(x=torch.eye(2).to_sparse())
        Traceback (most recent call last):
        ...
        TypeError: x is a tensor in the layout torch.sparse_coo; posenc reads dense ones. Pass \
x.to_dense().
    """
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            continue  # what is none is refused in other words
        if x.is_nested:
            raise TypeError(
                f"{name} is a nested tensor; posenc reads dense ones. Pad its rows "
                f"(torch.nested.to_padded_tensor) and say by padding_mask which tokens are real, "
                f"or join them to one row, with posenc.positions.packed(lengths=...) and "
                f"document_ids."
            )
        if x.layout is not torch.strided:
            raise TypeError(
                f"{name} is a tensor in the layout {x.layout}; posenc reads dense ones. Pass "
                f"{name}.to_dense()."
            )
        if x.is_quantized:
            raise TypeError(
                f"{name} is {x.dtype}, quantized; posenc reads numbers as they are. Pass "
                f"{name}.dequantize()."
            )


def check_unmasked(**arrays: Any) -> None:
    """Refuse arrays of numpy some of whose entries are masked; what lies below is no number.

    Raises:
        TypeError: One is; its name is told.

    Example:
        >>> import numpy
        >>> check_unmasked(values=numpy.ma.array([1.0, 2.0], mask=[False, True]))
        Traceback (most recent call last):
        ...
        TypeError: Entries of values are masked (numpy.ma): 1 of 2, which are no numbers. Pass \
values.compressed(), or values.filled(...) with the numbers that are meant.
    """
    for name, array in arrays.items():
        if not hasattr(array, "filled"):
            continue  # an array of another kind, or none
        if count := int(array.size - array.count()):
            raise TypeError(
                f"Entries of {name} are masked (numpy.ma): {count} of {array.size}, which are no "
                f"numbers. Pass {name}.compressed(), or {name}.filled(...) with the numbers that "
                f"are meant."
            )


def check_timeless(**arrays: Any) -> None:
    """Refuse dates and durations of numpy, whose numbers count a unit that nobody reads.

    Raises:
        TypeError: An array holds such; its name is told.

    Example:
        >>> import numpy
        >>> check_timeless(values=numpy.array([0, 40], dtype="timedelta64[ms]"))
        Traceback (most recent call last):
        ...
        TypeError: values are timedelta64[ms], numbers of a unit. Say which, as \
values / numpy.timedelta64(1, "s") of durations, and from which beginning, of dates.
    """
    for name, array in arrays.items():
        dtype = getattr(array, "dtype", None)
        if getattr(dtype, "kind", None) in ("m", "M"):
            raise TypeError(
                f"{name} are {dtype}, numbers of a unit. Say which, as {name} / "
                f'numpy.timedelta64(1, "s") of durations, and from which beginning, of dates.'
            )


def may_look(x: Tensor) -> bool:
    """Whether the values of ``x`` are known and may decide what happens next.

    They are not while compiling, exporting or tracing, under a mode that sees every operation
    (fake tensors, make_fx), on the meta device, in a subclass, or for what ``vmap`` maps over.

    Example:
        >>> may_look(torch.ones(2)), may_look(torch.ones(2, device="meta"))
        (True, False)
        >>> torch.func.vmap(lambda x: x * may_look(x))(torch.ones(1))
        tensor([0.])
    """
    return not (
        is_dynamo_compiling()
        or _modes()
        or _trace() is not None
        or type(x) not in PLAIN
        or x.is_meta
        or _in_vmap(x)
        or _in_older_vmap(x)
    )


def graph_looks(*tensors: Tensor) -> bool:
    """Whether a graph is being made, by torch.compile or torch.export, that can look at these.

    Then ``demand`` writes into it what is refused elsewhere. It cannot for what ``vmap`` maps over,
    for subclasses, and on devices without assertions.

    Example:
        >>> graph_looks(torch.ones(2))
        False
    """
    if not is_compiling():
        return False
    known = is_exporting() or all(type(x) in PLAIN for x in tensors)  # exports fake all of them
    return known and all(x.device.type in ASSERTING and not _batched(x) for x in tensors)


def demand(holds: Tensor, words: str) -> None:
    """Write into a graph that this must hold, each time that it runs.

    Where it does not, it ends with a RuntimeError of these words; on an accelerator with its
    assertion, after which the process can use that no more. Words name no length, which a graph
    that serves all of them does not know.

    Example:
        >>> def root(x):
        ...     if graph_looks(x):
        ...         demand((x >= 0).all(), "x is negative")
        ...     return x.sqrt()
        >>> torch.compile(root, backend="eager")(torch.tensor([-1.0]))
        Traceback (most recent call last):
        ...
        RuntimeError: x is negative
    """
    _assert_later(holds, words)


def eager() -> bool:
    """Whether operations run as they are called, seen by nobody but autograd.

    Example:
        >>> eager(), torch.func.vmap(lambda x: x * eager())(torch.ones(1))
        (True, tensor([0.]))
    """
    return not (is_dynamo_compiling() or _modes() or _trace() is not None or transformed())


def transformed() -> bool:
    """Whether torch.func, or forward-mode differentiation, transforms what runs; not in a graph.

    Then a tensor may be recorded outside of the transform although it says that it is not.

    Example:
        >>> transformed(), torch.func.vmap(lambda x: x * transformed())(torch.ones(1))
        (False, tensor([1.]))
    """
    if is_dynamo_compiling():
        return False
    # vmap, grad, jvp, functionalize of torch.func; the level of torch.autograd.forward_ad
    return _transform() is not None or getattr(forward_ad, "_current_level", 0) >= 0


def numbers(*tensors: Tensor) -> bool:
    """Whether these are nothing but numbers in memory: no subclass, and nothing lazy.

    Where that memory is, and whether it is there, is another question.

    Example:
        >>> x = torch.ones(2)
        >>> numbers(x), numbers(torch.complex(x, x).conj().imag)  # negated when it is read
        (True, False)
    """
    for x in tensors:  # noqa: SIM110 (a generator would take twice as long)
        if type(x) not in PLAIN or x.is_neg():
            return False
    return True


def stored(*tensors: Tensor) -> bool:
    """Whether these are ``numbers``, in memory that is still there.

    A sparse tensor, or one of torch's older vmap, has none, nor have zeros that torch only knows
    of. A tensor's own address does not tell: of a slice it is where that begins, and not 0.

    Example:
        >>> x = torch.ones(5)
        >>> slice = x[2:]
        >>> _ = x.untyped_storage().resize_(0)
        >>> stored(torch.ones(2)), stored(slice), slice.data_ptr()
        (True, False, 8)
    """
    try:
        for x in tensors:
            if type(x) not in PLAIN or x.is_neg():
                return False
            if not x.untyped_storage().data_ptr() and x.numel():
                return False
    except RuntimeError:
        return False
    return True


def on_cpu(*tensors: Tensor) -> bool:
    """Whether these are ``stored`` in this process's memory.

    Example:
        >>> on_cpu(torch.ones(2)), on_cpu(torch.ones(2), torch.ones(2, device="meta"))
        (True, False)
    """
    for x in tensors:
        if not x.is_cpu:
            return False
    return stored(*tensors)


def on_accelerator(first: Tensor, *others: Tensor | None) -> bool:
    """Whether these are numbers on one device that Triton compiles for; ``None`` is left out.

    Example:
        >>> on_accelerator(torch.ones(2))
        False
    """
    device = first.device
    if device.type not in ACCELERATORS or not has_triton():
        return False
    present = [x for x in others if x is not None]
    return stored(first, *present) and all(x.device == device for x in present)


@cache
def has_triton() -> bool:
    """Whether there is a Triton; torch for accelerators brings its own."""
    return find_spec("triton") is not None


def kernels_reach(first: Tensor, *others: Tensor | None) -> bool:
    """Whether these are numbers where some kernel reaches them, and nobody watches but autograd.

    Example:
        >>> kernels_reach(torch.ones(2), None), kernels_reach(torch.ones(2, device="meta"))
        (True, False)
    """
    if not eager():
        return False
    return on_cpu(first, *[x for x in others if x is not None]) or on_accelerator(first, *others)


def recorded(*tensors: Tensor | None) -> bool:
    """Whether autograd records what is done with these.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> recorded(torch.ones(2), weight), torch.no_grad()(recorded)(weight)
        (True, False)
    """
    if not torch.is_grad_enabled():
        return False
    return any(x is not None and x.requires_grad for x in tensors)


def hooked(module: nn.Module) -> bool:
    """Whether hooks wait for a call of this module, or it has a forward pass of its own.

    Hooks want what goes in and out; ``module.forward = ...`` puts another function there, as tools
    do that load weights late or add to what a layer gives.

    Example:
        >>> hooked(nn.Identity())
        False
    """
    forward = module._forward_hooks or module._forward_pre_hooks
    backward = module._backward_hooks or module._backward_pre_hooks
    return bool(forward or backward or "forward" in module.__dict__)


def overridden(module: nn.Module) -> list[str]:
    """The methods of its class that a module has others of, set on it alone.

    Example:
        >>> layer = nn.Identity()
        >>> layer.forward = torch.neg
        >>> overridden(layer)
        ['forward']
    """
    return [name for name in vars(module) if callable(getattr(type(module), name, None))]


def backward_pass() -> int:
    """Which backward pass this runs inside, as what gradient checkpointing computes anew; -1: none.

    Example:
        >>> backward_pass()
        -1
    """
    return -1 if is_compiling() else _backward_pass()


def captured(x: Tensor) -> bool:
    """Whether what runs is recorded to run again, when a random key would be the same each time.

    Example:
        >>> captured(torch.ones(2))
        False
    """
    return x.is_cuda and torch.cuda.is_current_stream_capturing()
