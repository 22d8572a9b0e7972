"""cos and sin of position × frequency: the one source of every sinusoid in the package."""

from array import array
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from posenc.arguments import check_choice
from posenc.frequencies.schedule import FINE_TURN_BITS, TURN_BITS, Schedule
from posenc.guards import floating, has_float64, may_look
from posenc.numerics.blocks import fill
from posenc.numerics.columns import Columns
from posenc.numerics.exact import cos_sin_of_sum
from posenc.numerics.phases import Summand
from posenc.numerics.product import joined
from posenc.positions import Coordinates, checked, consecutive, floats
from posenc.positions.steps import ONE, the_one

Arithmetic = Literal["exact", "float32", "float32-log"]

FEW_PHASES = 1 << 14  # up to so many, multiplying each in integers is faster than blocks
KEPT_SCALES = 8  # turns at so many scales of coordinates are kept
COARSEST = 2**64  # the coarsest step, for which the guard bits of fine turns reach
FINEST = 128  # a step turns by 2^-128 or more, so that its rounding is 2^-65 of it at most
WORD = 64
RADIANS = 6.283185307179586


class SinCos:
    """cos and sin at the frequencies of a schedule, at any int64 position.

    Args:
        schedule: The frequencies.
        arithmetic: ``exact``: correctly rounded in float32, bfloat16 and float16, within 3 ulp in
            float64. ``float32`` and ``float32-log``: the common float32 formulas bit for bit,
            whose frequencies are 1 / base^e and exp(−e·ln base); their error grows with position.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> cos, sin = SinCos(Geometric(4)).cos_sin(torch.tensor([2**62]))
        >>> sin
        tensor([[-0.7029,  0.4043]])
    """

    def __init__(self, schedule: Schedule, arithmetic: Arithmetic = "exact"):
        check_choice(get_args(Arithmetic), arithmetic=arithmetic)
        self.schedule = schedule
        self.arithmetic = arithmetic
        self.turns = schedule.turns()
        self.fine_turns = schedule.fine_turns()
        self._at_scales: dict[str, SinCos] = {}
        self.common = None if arithmetic == "exact" else schedule.float32(arithmetic).tolist()

    def __len__(self) -> int:
        return len(self.turns)

    @cached_property
    def operands(self) -> tuple[Int64[Tensor, "frequencies 3"], Float64[Tensor, "frequencies"]]:
        """Frequencies as kernels read them: turns a position in three words, the lowest first, and
        their sizes in radians a position, within rounding."""
        shifts = range(0, TURN_BITS, WORD)
        words = [turn >> shift & 2**WORD - 1 for turn in self.turns for shift in shifts]
        sizes = [abs(turn) * 2.0**-TURN_BITS * RADIANS for turn in self.turns]
        turns = _numbers(array("Q", words), torch.int64).view(-1, 3)
        return turns, _numbers(array("d", sizes), torch.float64)

    def at_scale(self, scale: Fraction) -> "SinCos":
        """The same for whole numbers n that stand for coordinates n · scale.

        The scale is folded into the frequencies before they are rounded to 2^-192 of a turn.

        Example:
            >>> from posenc.frequencies import Geometric
            >>> thirds = SinCos(Geometric(2)).at_scale(Fraction(1, 3))
            >>> thirds.cos_sin(torch.tensor([3]))[0]  # cos 1
            tensor([[0.5403]])
        """
        made = SinCos.__new__(SinCos)
        made.schedule, made.arithmetic, made.common = self.schedule, self.arithmetic, self.common
        made.turns = scaled_turns(self.fine_turns, scale)
        return made

    def of_steps(self, positions: Coordinates) -> tuple["SinCos", Tensor]:
        """What serves the steps of coordinates, and these steps."""
        text = positions.scale_text
        if text == ONE:
            return self, positions.values
        if isinstance(text, tuple) or is_dynamo_compiling():
            return self.at_scale(the_one(positions.scale)), positions.values
        made = self._at_scales.get(text)
        if made is None:  # which takes longer than the table of a few tokens
            made = self.at_scale(the_one(positions.scale))
            if len(self._at_scales) >= KEPT_SCALES:
                self._at_scales.clear()
            self._at_scales[text] = made
        return made, positions.values

    def summand(self, positions: Tensor | Coordinates) -> Summand:
        """Steps with the turns of one."""
        if not isinstance(positions, Coordinates):
            return Summand(positions, self.turns)
        own, steps = self.of_steps(positions)
        return Summand(steps, own.turns)

    def cos_sin(
        self,
        positions: Int64[Tensor, "*shape"] | Coordinates,
        dtype: torch.dtype = torch.float32,
        out: Columns | None = None,
        factor: float = 1.0,
    ) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
        """cos and sin at ``positions``, times ``factor``, rounded once.

        Compiled graphs, exports and transforms cannot ask whether a value is in doubt: there it
        is within 0.5000001 units in the last place.

        Args:
            positions: int64, or coordinates of one scale, of any shape.
            dtype: The dtype of the values.
            out: The columns of a table that exists already, to be written.
            factor: The attention factor of a schedule. The common formulas round before it.
        """
        if isinstance(positions, Coordinates) and self.common is None:
            own, positions = self.of_steps(positions)
            return own.cos_sin(positions, dtype, out, factor)
        dtype = floating(dtype)
        if self.common is not None:
            made = self._common_formula(checked(positions, reals=True), dtype, factor)
            return made if out is None else written(made, out)
        positions = checked(positions)
        if not has_float64(positions.device):
            cos, sin = self.cos_sin(positions.cpu(), dtype, factor=factor)
            made = cos.to(positions.device), sin.to(positions.device)
        elif ends := self._range(positions, dtype):
            return self._blocks(positions, ends, dtype, out, factor)
        else:  # every phase by its own multiplication
            made = cos_sin_of_sum([self.summand(positions)], dtype, factor)
        return made if out is None else written(made, out)

    def _common_formula(
        self, positions: Tensor | Coordinates, dtype: torch.dtype, factor: float
    ) -> tuple[Tensor, Tensor]:
        if isinstance(positions, Coordinates):
            the_one(positions.scale)
        frequencies = torch.tensor(self.common, dtype=torch.float32, device=positions.device)
        angles = floats(positions, torch.float32).unsqueeze(-1) * frequencies
        cos, sin = angles.cos(), angles.sin()
        if factor != 1.0:
            cos, sin = cos * factor, sin * factor
        return cos.to(dtype), sin.to(dtype)

    def _range(self, positions: Tensor, dtype: torch.dtype) -> tuple[int, int] | None:
        """The ends of positions that are many and dense: their range is best built in blocks."""
        if dtype == torch.float64 or not may_look(positions):  # a graph is for all sizes
            return None
        if positions.numel() * len(self) <= FEW_PHASES:
            return None
        first, last = (int(end) for end in positions.aminmax())
        return (first, last) if last - first < 2 * positions.numel() else None

    def _blocks(
        self,
        positions: Tensor,
        ends: tuple[int, int],
        dtype: torch.dtype,
        out: Columns | None,
        factor: float,
    ) -> tuple[Tensor, Tensor]:
        """The whole range in blocks, then the rows that are asked for, if they are not all."""
        first, last = ends
        # Counted from 0: the end of a range that begins at first may be past the last int64.
        run = consecutive(last - first + 1, device=positions.device) + first
        in_order = positions.shape == run.shape and torch.equal(positions, run)
        if in_order and out is not None and out.table.dtype == dtype:
            fill(out, first, self.turns, factor)
            return out.cos, out.sin
        whole = torch.empty(2, len(run), len(self), dtype=dtype, device=run.device)
        fill(Columns(whole.movedim(0, -2)), first, self.turns, factor)
        cos, sin = whole.unbind()
        if not in_order:
            cos, sin = cos[positions - first], sin[positions - first]
        return (cos, sin) if out is None else written((cos, sin), out)


def cos_sin_of_axes(
    parts: Sequence[SinCos],
    positions: Int64[Tensor, "*shape axes"] | Coordinates,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """cos and sin of the sum over axes, rounded once: phases are added while they are integers.

    Compiled graphs are within 0.5000001 units in the last place, as of ``SinCos``.
    """
    dtype = floating(dtype)
    if not has_float64(positions.device):
        cos, sin = cos_sin_of_axes(parts, positions.to("cpu"), dtype)
        return cos.to(positions.device), sin.to(positions.device)
    summands = [part.summand(positions[..., axis]) for axis, part in enumerate(parts)]
    return cos_sin_of_sum(summands, dtype)


def _numbers(numbers: array, dtype: torch.dtype) -> Tensor:
    """Numbers in this process's memory, whatever device torch makes tensors on."""
    if not numbers:
        return torch.empty(0, dtype=dtype, device="cpu")
    return torch.frombuffer(numbers, dtype=dtype)


def scaled_turns(fine: Sequence[int], scale: Fraction) -> tuple[int, ...]:
    """Turns in units of 2^-320, times a scale, rounded to units of 2^-192."""
    if scale > COARSEST:
        raise ValueError(f"Coordinates go in steps of {scale}; steps may be up to 2^64.")
    below = scale.denominator << (FINE_TURN_BITS - TURN_BITS)
    made = tuple((2 * turns * scale.numerator + below) // (2 * below) for turns in fine)
    for turns, fine_turns in zip(made, fine, strict=True):
        if fine_turns and abs(turns) < 1 << (TURN_BITS - FINEST):
            raise ValueError(f"Coordinates go in steps of {scale}; give larger steps.")
    return made


def written(made: tuple[Tensor, Tensor], out: Columns) -> tuple[Tensor, Tensor]:
    """Cosines and sines in the columns of a table that exists already."""
    cos, sin = made
    # Both at once: Inductor up to torch 2.10 mixes up two writes into every second number.
    both = (cos, sin) if out.cos_first else (sin, cos)
    out.table.copy_(joined(both, out.axis, torch.stack))
    return out.cos, out.sin


def empty_table(
    positions: Int64[Tensor, "*shape"], *columns: int, dtype: torch.dtype
) -> Float[Tensor, "..."]:
    """Room for a table ``[*shape, *columns]``, batched by ``vmap`` where the positions are."""
    like = positions.reshape(*positions.shape, *[1] * len(columns))
    like = like.expand(*positions.shape, *columns)
    return torch.empty_like(like, dtype=dtype, memory_format=torch.contiguous_format)
