"""Operands of every operator, drawn at random, in every kind of memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from posenc.frequencies import FromCheckpoint, Geometric
from posenc.kernels.addition import front as addition
from posenc.kernels.operators import TABLES
from posenc.kernels.philox import Dropping
from posenc.kernels.rotary import front as rotary
from posenc.kernels.sincos import front as sincos
from posenc.numerics.sincos import SinCos

WRITABLE = "contiguous", "reordered", "across", "sliced", "unaligned", "every second channel"
LAYOUTS = (*WRITABLE, "first repeated", "one number")


def laid(values: Tensor, layout: str) -> Tensor:
    """``values`` in other memory; the last two layouts repeat some of them."""
    if layout == "reordered":
        return values.transpose(0, -2).contiguous().transpose(0, -2) if values.ndim > 1 else values
    if layout == "across":
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "sliced":
        room = values.new_full([size + 2 for size in values.shape], 7)
        return room[tuple(slice(1, 1 + size) for size in values.shape)].copy_(values)
    if layout == "unaligned":
        return values.new_empty(values.numel() + 1)[1:].view(values.shape).copy_(values)
    if layout == "every second channel":
        return values.repeat_interleave(2, -1)[..., ::2]
    if layout == "first repeated":
        return values[:1].expand_as(values)
    if layout == "one number":
        return values.flatten()[:1].expand_as(values) if values.numel() else values
    return values.clone()


def angles(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A table ``[*shape[:-1], 2, pairs]`` of rotations, which leave content as large as it is."""
    angle = torch.rand(shape, dtype=torch.float64) * 6.28
    return torch.stack((angle.cos(), angle.sin()), -2).to(dtype)


def bits(x: Tensor) -> Tensor:
    """The numbers' bits; every NaN is one."""
    x = x.detach().resolve_neg()
    if x.is_floating_point():
        x = torch.where(x.isnan(), torch.nan, x)
        return x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])
    return x


def same(made: Any, want: Any) -> bool:
    """Whether results are the same bits, of the same shape and dtype."""
    if not isinstance(made, Tensor):
        return made is want is None or all(map(same, made, want))
    return made.dtype == want.dtype and torch.equal(bits(made), bits(want))


def small(most: int) -> st.SearchStrategy[int]:
    return st.integers(1, most)


def chosen(*among: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(among)


seeds = st.integers(0, 2**32 - 1).map(torch.manual_seed)
layouts, writable, dtypes = chosen(*LAYOUTS), chosen(*WRITABLE), chosen(*TABLES)


@st.composite
def rotation(draw, parts: int, looked_up: bool, form: str, dtype=dtypes) -> list[Any]:
    """Arguments of the operators of ``rotary.front``."""
    draw(seeds)
    dtype, layout = draw(dtype), rotary.RotaryLayout(*draw(st.tuples(*[st.booleans()] * 4)))
    batch, tokens, pairs = draw(st.tuples(small(3), small(9), small(20)))
    batched, rows = draw(st.booleans()), draw(chosen("shared", "one", "each"))
    contents = []
    for _ in range(parts):
        axes = [draw(small(5)), tokens] if layout.heads_first else [tokens, draw(small(5))]
        if batched:
            axes = [batch if rows == "each" else draw(small(3)), *axes]
        x = torch.randn(*axes, 2 * pairs + draw(st.integers(0, 9)))
        narrow = dtype is torch.float32 and draw(st.booleans())
        x = x.to(torch.bfloat16 if narrow and contents else dtype)
        contents.append(laid(x, draw(writable if form == rotary.IN_PLACE else layouts)))
    each = {"shared": [], "one": [1], "each": [batch]}[rows if batched else "shared"]
    if looked_up:
        table, wanted = angles(20, pairs, dtype=TABLES[dtype]), torch.randint(20, (*each, tokens))
        given = [laid(table, draw(layouts)), laid(wanted, draw(layouts))]
    else:
        given = [laid(angles(*each, tokens, pairs, dtype=TABLES[dtype]), draw(layouts))]
    outs = [laid(torch.zeros_like(x), draw(writable)) for x in contents if form == rotary.OUT]
    return [*contents, *given, *outs, layout.bits]


@st.composite
def rotation_by(draw, dtype=dtypes) -> list[Any]:
    """Content, and cosines and sines that broadcast to it in any way."""
    draw(seeds)
    dtype = draw(dtype)
    axes, pairs = draw(st.lists(small(4), min_size=2, max_size=3)), draw(small(20))
    x = torch.randn(*axes, 2 * pairs + draw(st.integers(0, 9))).to(dtype)
    rows = [draw(chosen(1, size)) for size in axes][draw(st.integers(0, len(axes))) :]
    both = angles(*rows, pairs, dtype=TABLES[dtype]).unbind(-2)
    layout = rotary.RotaryLayout(
        draw(st.booleans()), draw(st.booleans()), True, draw(st.booleans())
    )
    return [laid(x, draw(layouts)), *[laid(each, draw(layouts)) for each in both], layout.bits]


droppings = st.builds(Dropping, st.floats(0.01, 0.99), st.integers(0, 2**63 - 2))
numbers = st.one_of(st.just((1.0, 0, 0)), droppings.map(lambda dropping: dropping.numbers))


@st.composite
def summation(draw, form: addition.Form, dtype=dtypes) -> list[Any]:
    """Arguments of the operators of ``addition.front``: tables broadcast in every way."""
    draw(seeds)
    count, with_table, with_positions, with_out = form
    dtype, width = draw(dtype), draw(chosen(1, 2, 7, 64, 70, 128, 1025))
    least = 1 if count == 2 or with_positions else 0
    tokens = draw(st.lists(small(5), min_size=least, max_size=3))
    x = torch.randn(*((9,) if count == 2 else tokens), width).to(dtype)
    given = [laid(x, draw(layouts))]
    if count == 2:
        given.append(laid(torch.randint(9, tokens), draw(layouts)))
    if with_table:
        over = [draw(chosen(1, size)) for size in tokens]
        over = over[draw(st.integers(0, max(len(over) - with_positions, 0))) :]
        rows = (11, width) if with_positions else (*over, width)
        given.append(laid(torch.randn(rows, dtype=TABLES[dtype]), draw(layouts)))
        if with_positions:
            given.append(laid(torch.randint(11, over), draw(layouts)))
    if with_out:
        given.append(laid(torch.zeros(*tokens, width, dtype=dtype), draw(writable)))
    return [*given, draw(chosen(1.0, 22.627416997969522, -0.3)), *draw(numbers)]


SCHEDULES = (
    Geometric(64),
    Geometric(75, 500.0),
    Geometric(2),
    Geometric(600),
    FromCheckpoint([0.0, 1e-12, 1e-20, 1.0, 3.14159265, 1000.0, -0.3]),
)
runs = st.tuples(st.integers(-(2**63), 2**63 - 1), small(40))


@st.composite
def filling(draw, dtype=dtypes) -> list[Any]:
    """Arguments of ``sincos_``: runs of positions from anywhere, and tables of any columns."""
    dtype, schedule = draw(dtype), SinCos(draw(chosen(*SCHEDULES)))
    dtype = torch.bfloat16 if dtype is torch.float64 else dtype
    some = draw(st.lists(runs, min_size=1, max_size=3))
    wanted = torch.cat([torch.arange(n) + min(first, 2**63 - 1 - n) for first, n in some])
    rows = draw(chosen(1, 2, 3))
    shape = draw(chosen((len(wanted),), (len(wanted) // rows, rows), (1, len(wanted), 1)))
    wanted = laid(wanted[: torch.Size(shape).numel()].view(shape), draw(layouts))
    form = draw(st.integers(0, 3))
    columns = (len(schedule), 2) if form & sincos.BESIDE else (2, len(schedule))
    table = laid(torch.zeros(*shape, *columns, dtype=dtype), draw(writable))
    return [table, wanted, *schedule.operands, draw(chosen(1.0, 1.2079441541679836)), form]


@dataclass(frozen=True)
class Operator:
    """An operator of ``torch.ops.posenc``, and what it is held against.

    Attributes:
        call: The operator.
        formula: The same in torch's own operations, with the same arguments.
        by_triton: The same on an accelerator.
        operands: Random arguments for it.
        written: Which arguments it writes to.
    """

    call: Any
    formula: Callable[..., Any]
    by_triton: Callable[..., Any]
    operands: Callable[..., st.SearchStrategy[list[Any]]]

    @property
    def written(self) -> list[int]:
        arguments = self.call._schema.arguments
        return [i for i, each in enumerate(arguments) if each.alias_info is not None]


def _operators() -> dict[str, Operator]:
    made = [
        Operator(call, rotary._formula(*key), rotary._by_triton(*key), partial(rotation, *key))
        for key, call in rotary.OPERATORS.items()
    ]
    by = rotary._rotary_by, rotary._rotary_by_triton, rotation_by
    made += [Operator(rotary.ROTARY_BY, *by)]
    made += [
        Operator(call, addition._formula(key), addition._by_triton(key), partial(summation, key))
        for key, call in addition.OPERATORS.items()
    ]
    made += [Operator(sincos.FILL, sincos._formula, sincos._by_triton, filling)]
    return {each.call.name().removeprefix("posenc::"): each for each in made}


OPERATORS = _operators()
WRITING = [name for name, operator in OPERATORS.items() if operator.written]


def copies(given: list[Any]) -> list[Any]:
    return [x.clone() if isinstance(x, Tensor) else x for x in given]


def tensors(given: list[Any]) -> list[Tensor]:
    return [x for x in given if isinstance(x, Tensor)]
