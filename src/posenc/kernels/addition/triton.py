"""Addition of a table to content on an accelerator, with dropout from a counter."""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from struct import Struct

import torch
import triton
import triton.language as tl
from torch import Tensor

from posenc.kernels.philox import COUNTERS, ROUNDS, WORDS

ELEMENTS = 2048
"""Of one program; a whole number of blocks of random words."""

BITS, DOUBLE = Struct("=q"), Struct("=d")


@triton.jit
def _axes(row, middle, last, step_0, step_1, step_2):
    """Where a row lies, from its number and the strides of three axes."""
    return row // (middle * last) * step_0 + row // last % middle * step_1 + row % last * step_2


@triton.jit
def _put(x, table, out, column, here, kept, scale, rescale, known,
         WITH_TABLE: tl.constexpr, DROPS: tl.constexpr):  # fmt: skip
    """(x · scale + table) · rescale where it is kept, and 0 elsewhere; each step rounded."""
    content = tl.load(x + column, mask=here)
    value = content.to(scale.dtype) * scale
    if WITH_TABLE:
        value += tl.load(table + column, mask=here)
    value = tl.where(known, value, float("nan"))
    if DROPS:
        value = tl.where(kept, value * rescale, 0.0)
    tl.store(out + column, value.to(content.dtype), mask=here)


@triton.jit(do_not_specialize=["scale_bits", "rescale_bits", "threshold", "key"])
def add_kernel(
    x, table, out, ids, positions, scale_bits, rescale_bits, threshold, key,
    first_axis, middle, last, width,
    x_0, x_1, x_2, table_0, table_1, table_2, out_0, out_1, out_2,
    ids_0, ids_1, ids_2, positions_0, positions_1, positions_2,
    x_rows, x_row, table_rows, table_row, windows,
    WIDE: tl.constexpr, WITH_TABLE: tl.constexpr, WITH_IDS: tl.constexpr,
    WITH_POSITIONS: tl.constexpr, DROPS: tl.constexpr, ELEMENTS: tl.constexpr,
    COUNTERS: tl.constexpr, WORDS: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """A window of one row a program; windows begin at whole blocks of random words.

    An id or a position that is no row makes NaN: raising would have to wait for it.
    """
    program = tl.program_id(0).to(tl.int64)
    row = program // windows
    scale = scale_bits.to(tl.int64).to(tl.float64, bitcast=True).to(WIDE)
    rescale = rescale_bits.to(tl.int64).to(tl.float64, bitcast=True).to(WIDE)
    known = row >= 0
    x += _axes(row, middle, last, x_0, x_1, x_2)
    out += _axes(row, middle, last, out_0, out_1, out_2)
    table += _axes(row, middle, last, table_0, table_1, table_2)
    if WITH_IDS:
        number = tl.load(ids + _axes(row, middle, last, ids_0, ids_1, ids_2))
        there = (number >= 0) & (number < x_rows)
        x += tl.where(there, number, 0) * x_row
        known = known & there
    if WITH_POSITIONS:
        at = _axes(row, middle, last, positions_0, positions_1, positions_2)
        number = tl.load(positions + at)
        there = (number >= 0) & (number < table_rows)
        table += tl.where(there, number, 0) * table_row
        known = known & there

    BLOCK: tl.constexpr = COUNTERS * WORDS
    block = row * width // BLOCK + program % windows * (ELEMENTS // BLOCK)
    if DROPS:
        blocks = block + tl.arange(0, ELEMENTS // BLOCK)
        counters = blocks[:, None] * COUNTERS + tl.arange(0, COUNTERS)[None, :]
        low, high = counters.to(tl.uint32), (counters >> 32).to(tl.uint32)
        none = low * 0
        words = tl.philox(key.to(tl.int64), low, high, none, none, n_rounds=ROUNDS)
        column = blocks[:, None] * BLOCK + tl.arange(0, COUNTERS)[None, :] - row * width
        for word in tl.static_range(WORDS):
            here = (column >= 0) & (column < width)
            kept = words[word].to(tl.int64) >= threshold
            _put(x, table, out, column, here, kept, scale, rescale, known, WITH_TABLE,
                 DROPS)  # fmt: skip
            column += COUNTERS
    else:
        column = block * BLOCK - row * width + tl.arange(0, ELEMENTS)
        here = (column >= 0) & (column < width)
        _put(x, table, out, column, here, here, scale, rescale, known, WITH_TABLE,
             DROPS)  # fmt: skip


def scaled_sum(
    contents: tuple[Tensor, ...],
    table: Tensor | None,
    positions: Tensor | None,
    out: Tensor | None,
    scale: float,
    rescale: float,
    threshold: int,
    key: int,
) -> Tensor | None:
    """The sum by Triton, or ``None`` where it does not take it; ``contents``: see ``front.py``.

    Where an id or a position is not a row, the token becomes NaN. The mask of a key is that of the
    CPU.
    """
    x, ids = contents[0], contents[1] if len(contents) == 2 else None
    shape = x.shape if ids is None else (*ids.shape, x.shape[-1])
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    if not 1 <= len(shape) <= 4 or (table is not None and table.dtype is not wide):
        return None
    made = torch.empty(shape, dtype=x.dtype, device=x.device) if out is None else out
    if not made.numel():
        return made
    tokens = shape[:-1]
    x_steps = _steps(x, shape) if ids is None else (0, 0, 0, x.stride(1))
    table_steps = (0, 0, 0, 1)
    if table is not None:
        table_steps = _steps(table, shape) if positions is None else (0, 0, 0, table.stride(1))
    out_steps = _steps(made, shape)
    if any(steps[-1] != 1 for steps in (x_steps, table_steps, out_steps)):
        return None
    first, middle, last = (*(1, 1, 1)[len(tokens) :], *tokens)
    width, block = shape[-1], COUNTERS * WORDS
    windows = triton.cdiv(width + (block - 1 if width % block else 0), ELEMENTS)
    with torch.cuda.device_of(x):
        add_kernel[(first * middle * last * windows,)](
            x, x if table is None else table, made, x if ids is None else ids,
            x if positions is None else positions, _bits(scale), _bits(rescale), threshold, key,
            first, middle, last, width,
            *x_steps[:3], *table_steps[:3], *out_steps[:3],
            *_steps_of_numbers(ids, tokens), *_steps_of_numbers(positions, tokens),
            x.shape[0], x.stride(0), 0 if table is None else table.shape[0],
            0 if table is None else table.stride(0), windows,
            WIDE=tl.float64 if x.dtype is torch.float64 else tl.float32,
            WITH_TABLE=table is not None, WITH_IDS=ids is not None,
            WITH_POSITIONS=positions is not None,
            DROPS=threshold != 0, ELEMENTS=ELEMENTS, COUNTERS=COUNTERS, WORDS=WORDS,
            ROUNDS=ROUNDS,
            enable_fp_fusion=False,  # products are rounded before they are added, as torch's are
        )  # fmt: skip
    return made


def _steps(x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides over three axes of tokens and the channels, 0 along those that are broadcast."""
    *steps, last = x.expand(shape).stride()
    return (*(0, 0, 0)[len(steps) :], *steps, last if shape[-1] > 1 else 1)


def _steps_of_numbers(numbers: Tensor | None, tokens: tuple[int, ...]) -> tuple[int, ...]:
    if numbers is None:
        return 0, 0, 0
    return (*(0, 0, 0)[len(tokens) :], *numbers.expand(tokens).stride())


def _bits(value: float) -> int:
    """A double, as the integer that it is handed over as; Triton would make a float32 of it."""
    return BITS.unpack(DOUBLE.pack(value))[0]
