"""Sums of content and a table: the operator, or the formula where operators do not serve."""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.nn import functional as F

from posenc.guards import captured, plain, recorded
from posenc.kernels.addition import reference
from posenc.kernels.operators import (
    TABLES,
    check_devices,
    refusal,
    register,
    serve,
    written,
)
from posenc.kernels.philox import drawn

Numbers = tuple[float, float, int, int]
"""scale, rescale, threshold and key, as operators take them."""


def scaled_sum(
    x: Float[Tensor, "*shape dim"],
    table: Float[Tensor, "*rows dim"] | None,
    positions: Int64[Tensor, "*tokens"] | None = None,
    *,
    scale: float | None = None,
    dropout: float = 0.0,
    out: Tensor | None = None,
) -> Float[Tensor, "*shape dim"]:
    """``dropout(x · scale + table)``, rounded once to the dtype of ``x``.

    Dropout is that of ``posenc.kernels.philox``, with a key drawn from torch's generator of the
    CPU: only the key is kept for the gradient, and every device drops the same elements. In graphs
    and transforms, and on devices without kernels, it is torch's own.

    Args:
        x: Content.
        table: What is added, if anything is; it broadcasts against ``x``. With ``positions``,
            ``[rows, dim]``.
        positions: Which row of the table each token takes.
        scale: What ``x`` is multiplied with first.
        dropout: Probability of dropping an element of the sum.
        out: Where to write the result; ``out=x`` adds in place.

    Example:
        >>> scaled_sum(torch.ones(2), torch.tensor([0.5, 0.25]), scale=3.0)
        tensor([3.5000, 3.2500])
    """
    if dropout and draws_elsewhere(dropout, x, table):
        reference.check(x, table, positions)
        wide = x.to(reference.working_dtype(x, table))
        summed = reference.scaled_sum(wide, table, positions, 1.0 if scale is None else scale)
        return written(F.dropout(summed, dropout).to(x.dtype), out)
    return summed_by(x, table, positions, numbers_of(scale, dropout), out)


def draws_elsewhere(dropout: float, x: Tensor, table: Tensor | None) -> bool:
    """Whether dropout is torch's own: in graphs and transforms, and where no kernel draws."""
    tensors = (x,) if table is None else (x, table)
    ours = (x.is_cpu or x.is_cuda) and plain(*tensors) and not torch.compiler.is_compiling()
    return dropout == 1.0 or not ours or captured(x)


def numbers_of(scale: float | None, dropout: float) -> Numbers:
    """The numbers of a sum; those of dropout come with a new key."""
    scale = 1.0 if scale is None else scale
    dropping = drawn(dropout) if dropout else None
    return (scale, 1.0, 0, 0) if dropping is None else (scale, *dropping.numbers)


def summed_by(
    x: Tensor,
    table: Tensor | None,
    positions: Tensor | None,
    numbers: Numbers,
    out: Tensor | None = None,
) -> Tensor:
    """``(x · scale + table) · rescale``, by the operator if it serves."""
    learns, tensors = recorded(x, table), (x,) if table is None else (x, table)
    if (
        not serve(*tensors)
        or not 1 <= x.ndim <= 4
        or (table is not None and table.dtype is not TABLES.get(x.dtype))
        or (table is None and out is not None)
        or (learns and (out is not None or (table is not None and table.requires_grad)))
    ):
        return written(reference.scaled_sum(x, table, positions, *numbers), out)
    if learns:
        return _Sum.apply(x, table, positions, numbers)
    return by_operator((x,), table, positions, numbers, out)


def fits(table: Tensor | None, x: Tensor) -> bool:
    """Whether a kernel takes the table beside ``x``."""
    return table is None or (plain(table) and table.dtype is TABLES.get(x.dtype))


def by_operator(
    contents: tuple[Tensor, ...],
    table: Tensor | None,
    positions: Tensor | None,
    numbers: Numbers,
    out: Tensor | None = None,
) -> Tensor:
    """The sum by the operator of these operands; ``contents`` are ``x``, or a weight and ids."""
    operator = OPERATORS[len(contents), table is not None, positions is not None, out is not None]
    given = [each for each in (*contents, table, positions, out) if each is not None]
    try:
        made = operator(*given, *numbers)
    except RuntimeError as error:
        raise refusal(error) from None
    return made if out is None else out


class _Sum(torch.autograd.Function):
    """A sum for content that learns; neither that nor the mask is kept."""

    @staticmethod
    def forward(ctx, x, table, positions, numbers):
        ctx.numbers = numbers
        return by_operator((x,), table, positions, numbers)

    @staticmethod
    def backward(ctx, gradient):  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient_of_x(gradient, ctx.numbers), None, None, None


def gradient_of_x(gradient: Float[Tensor, "*shape"], numbers: Numbers) -> Float[Tensor, "*shape"]:
    """The gradient of a sum by ``x``: first what is kept, then the scale."""
    scale, rescale, threshold, key = numbers
    if threshold:
        return summed_by(gradient, None, None, (rescale, scale, threshold, key))
    return gradient if scale == 1.0 else summed_by(gradient, None, None, numbers)


Form = tuple[int, bool, bool, bool]
"""How many contents there are (a weight has ids), a table, positions, and somewhere to write."""


def _parted(form: Form, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of an operator: contents, table, positions, out, and the four numbers."""
    count, with_table, with_positions, with_out = form
    rest = iter(given[count:-4])
    table, positions, out = (
        next(rest) if there else None for there in (with_table, with_positions, with_out)
    )
    return given[:count], table, positions, out, given[-4:]


def _formula(form: Form) -> Callable[..., Any]:
    """The formula with the arguments of one operator."""

    def formula(*given: Any) -> Any:
        contents, table, positions, out, numbers = _parted(form, given)
        x = contents[0] if len(contents) == 1 else F.embedding(contents[1], contents[0])
        made = reference.scaled_sum(x, table, positions, *numbers)
        if out is not None:
            written(made, out)
            return None
        made = made.contiguous()  # as kernels make it
        return made.clone() if made is contents[0] else made

    return formula


def _by_triton(form: Form) -> Callable[..., Any]:
    """The same by Triton, where that takes it."""
    formula = _formula(form)

    def run(*given: Any) -> Any:
        from posenc.kernels.addition import triton

        contents, table, positions, out, numbers = _parted(form, given)
        made = triton.scaled_sum(contents, table, positions, out, *numbers)
        if made is None:
            return formula(*given)
        if out is None:
            return made
        increment_version(out)
        return None

    return run


def _shaped(form: Form) -> Callable[..., Any]:
    def shaped(*given: Any) -> Any:
        (x, *ids), _, _, out, _ = _parted(form, given)
        check_devices(*[each for each in given if isinstance(each, Tensor)])
        shape = (*ids[0].shape, x.shape[-1]) if ids else x.shape
        return x.new_empty(shape) if out is None else None

    return shaped


def _name(form: Form) -> str:
    count, with_table, with_positions, with_out = form
    name = "embed" + "_add" * with_table if count == 2 else "add" if with_table else "scale"
    return name + "_at" * with_positions + "_out" * with_out


TABLES_GIVEN = (False, False), (True, False), (True, True)
FORMS: list[Form] = [
    (count, *given, with_out)
    for count, given, with_out in product((1, 2), TABLES_GIVEN, (False, True))
    if count == 2 or given[0] or not with_out
]
OPERATORS = {
    form: register(_name(form), _formula(form), _shaped(form), _by_triton(form)) for form in FORMS
}
