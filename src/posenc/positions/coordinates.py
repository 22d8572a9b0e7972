"""Real coordinates: seconds, pixels, timesteps, held as whole numbers of one exact step."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from numbers import Rational
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from posenc._guards import check_dense, demand, floating, graph_looks, has_float64, may_look
from posenc.positions.mantissas import ONE, exact_parts, steps_nearest, words_of
from posenc.positions.scaled import (
    BLOCK,
    differences_of_rows,
    doubles_of,
    float_pairs,
    in_blocks,
    scaled,
    whole_row,
)
from posenc.positions.scales import (
    Step,
    Text,
    as_fractions,
    checked_scale,
    exact,
    factors,
    multiplied,
    of_last_axis,
    product,
    read,
    shift,
    step_of_all,
    steps_of,
    written,
)
from posenc.positions.seen import (
    FARTHEST,
    LONG,
    NEAR,
    UNSEEN,
    Kept,
    Seen,
    adds_up,
    counted,
    reach_of,
    seen_of,
    size_of,
)
from posenc.positions.words import (
    REST_BITS,
    Words,
    as_floats,
    as_integers,
    carried,
    compared,
    differences,
    few_float_differences,
    float_differences,
    negative,
    of_integers,
    pairs,
    ranks,
)

MOST = 2**63 - 1
"""The largest count of steps."""

EXACT = 2**52
"""Up to so many steps, float64 holds the difference of two."""

NOWHERE = -(2**63)
"""Every coordinate of the first token without a place; the next ones count on from there."""

MANY = 2**16
"""So many tokens without a place are told apart."""

FEW_PAIRS = 1 << 11
"""Up to so many pairs, the number of operations on them counts, and beyond what each works on."""

CHUNK = 1 << 14
"""So many numbers at a time stay in cache, as those between all queries and keys do not."""


class Coordinates:
    """Real numbers that lose nothing: coordinate = values · scale.

    ``values`` is an int64 tensor, and ``scale`` a positive rational number, or one an axis. A float
    is a whole number times a power of two, so floats are taken as the numbers that they are; thirds
    and hundredths are given as fractions or by their scale. Encodings whose formula takes reals
    take coordinates wherever positions go, and are as exact there as at whole positions.

    Numbers of very different size, as 0.1 beside 3600.1, may have no common step of 63 bits. Then
    coordinate = (values + rest · 2^-62) · scale, with 124 bits, and tables take longer to build;
    ``rounded`` gives them one step.

    Args:
        values: Floats (float64, float32; a tensor, an array of numpy, or a list), whole numbers, or
            a list with fractions in it.
        scale: What all of them are multiplied with: a whole number or a ``Fraction``, or several,
            one for each entry of the last axis. Integers over a common denominator are
            ``Coordinates(integers, scale=Fraction(1, denominator))``.
        device: Where to make the tensor, if ``values`` are none yet.

    Raises:
        TypeError: ``values`` are no real numbers, 16-bit floats, or floats where nobody can look.
        ValueError: A number is not finite; the numbers span more than 124 bits; or the scale is not
            positive.

    Example:
        >>> seconds = Coordinates([0.0, 0.5, 2.25])
        >>> seconds.values, seconds.scale
        (tensor([0, 2, 9]), Fraction(1, 4))
        >>> (seconds + Fraction(1, 3)).tolist()
        [Fraction(1, 3), Fraction(5, 6), Fraction(31, 12)]
        >>> frames = Coordinates(torch.arange(3), scale=Fraction(1, 30))
        >>> frames[2].tolist()
        Fraction(1, 15)
    """

    __array_ufunc__ = None
    """Arrays of numpy on the left leave operators to coordinates."""

    values: Int64[Tensor, "*shape"]
    rest: Int64[Tensor, "*shape"] | None
    scale_text: Text
    """The scale as text, which is what is the same where the scale is."""
    _kept: Kept | None = None
    """Of coordinates with rests, which are made here."""

    def __init__(
        self,
        values: Any,
        *,
        scale: Rational | Sequence[Rational] | None = None,
        device: torch.device | str | None = None,
    ):
        check_dense(values=values)
        if isinstance(values, Coordinates):
            seen = values._seen
            values, rest, own = values.values, values.rest, values.scale
        elif isinstance(values, Tensor) and values.dtype == torch.int64:
            rest, own, seen = None, ONE, UNSEEN
        else:
            values, rest, own = exact_parts(values, device)
            seen = seen_of(values, rest)
        self._take(values, rest, seen)
        # As text: graphs take a text for a constant, and the number in a Fraction for a variable.
        scale = own if scale is None else product(own, checked_scale(scale, values))
        self.scale_text = written(scale)

    @classmethod
    def rounded(
        cls, values: Any, step: Rational, *, device: torch.device | str | None = None
    ) -> "Coordinates":
        """The multiples of ``step`` that are nearest to ``values``, ties to even.

        For floats that stand for something rounder than they are: 0.1 is
        0.1000000000000000055…, and a tenth in steps of ``Fraction(1, 10)``.

        Raises:
            TypeError: ``values`` are no real numbers.
            ValueError: A number is not finite, or of too many steps.

        Example:
            >>> Coordinates.rounded([0.1, 0.2, 0.3], Fraction(1, 10)).values
            tensor([1, 2, 3])
        """
        chosen = checked_scale(step, None)
        assert isinstance(chosen, Fraction)
        return cls(steps_nearest(values, chosen, device), scale=chosen)

    @classmethod
    def _made(
        cls, values: Tensor, rest: Tensor | None, scale: Step | Text, seen: Seen = UNSEEN
    ) -> "Coordinates":
        made = cls.__new__(cls)
        made.scale_text = written(scale)
        made._take(values, rest, seen)
        return made

    def _take(self, values: Tensor, rest: Tensor | None, seen: Seen) -> None:
        if rest is not None and seen is not UNSEEN:
            try:
                writes = values._version + rest._version
            except RuntimeError:  # of inference mode, which counts no writes
                values, rest = counted(values), counted(rest)
                writes = values._version + rest._version
            self._kept = Kept(seen, values, rest, writes)
        self.values, self.rest = values, rest

    @property
    def _seen(self) -> Seen:
        """What was seen, if nobody has written to the words since, or put others in their place."""
        kept = self._kept
        if kept is None or is_dynamo_compiling():
            return UNSEEN
        same = kept.values is self.values and kept.rest is self.rest
        writes = kept.values._version + kept.rest._version
        return kept.seen if same and writes == kept.writes else UNSEEN

    def __getstate__(self) -> tuple[Tensor, Tensor | None, Text]:
        return self.values, self.rest, self.scale_text

    def __setstate__(self, state: tuple[Tensor, Tensor | None, Text]) -> None:
        values, rest, self.scale_text = state
        self._take(values, rest, seen_of(values, rest))

    def _words(self) -> Words:
        rest = self.rest
        return Words(self.values, torch.zeros_like(self.values) if rest is None else rest)

    def _each(
        self, change: Callable[[Tensor], Tensor], scale: Step | Text | None = None
    ) -> "Coordinates":
        """The same numbers in other tensors, and in the same scale unless it is told."""
        rest = None if self.rest is None else change(self.rest)
        text = self.scale_text if scale is None else scale
        return Coordinates._made(change(self.values), rest, text, self._seen.each(change))

    def _lengthened(self) -> "Coordinates":
        """The same in steps of 2^62, and the rests.

        Raises:
            ValueError: One is the mark of a token that stands nowhere.
        """
        _check_no_marks(self)
        scale = product(self.scale, Fraction(2**REST_BITS))
        return Coordinates._made(*carried(torch.zeros_like(self.values), self.values), scale)

    @property
    def _finest(self) -> Step:
        """The step that ``values`` count, or that of their rests."""
        return self.scale if self.rest is None else product(self.scale, Fraction(1, 2**REST_BITS))

    def with_words(
        self, steps: Callable[[Tensor], Tensor], rest: Callable[[Tensor], Tensor] | None = None
    ) -> "Coordinates":
        """The same scale, with ``values`` changed, and ``rest`` likewise or as told."""
        own = None if self.rest is None else (rest or steps)(self.rest)
        return Coordinates._made(steps(self.values), own, self.scale_text)

    def _counts(self) -> Any:
        """How many of the finest steps each is, in lists."""
        if self.rest is None:
            return self.values.tolist()
        return as_integers(self.values.tolist(), self.rest.tolist())

    # Like a tensor --------------------------------------------------------------------------------

    @property
    def shape(self) -> torch.Size:
        """The shape of the coordinates."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.values.ndim

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.values.device

    @property
    def scale(self) -> Step:
        """The size of a step: a ``Fraction``, or one for each entry of the last axis."""
        return read(self.scale_text)

    def numel(self) -> int:
        """How many there are."""
        return self.values.numel()

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        rest = "" if self.rest is None else f"rest={self.rest!r}, "
        return f"Coordinates({self.values!r}, {rest}scale={self.scale!r})"

    def __getitem__(self, index: Any) -> "Coordinates":
        """Some of them, as of a tensor; ``[..., axis]`` takes the scale of that axis along.

        Raises:
            TypeError: The last axis has a scale for each entry, and is indexed with several.
            ValueError: It has, and would be the last no more.
        """
        values, text = self.values[index], self.scale_text  # which tells if an index is wrong
        if isinstance(text, tuple):
            text = text[of_last_axis(index, self.ndim)] or ONE
            if isinstance(text, tuple) and values.shape[-1:] != (len(text),):
                raise ValueError(
                    f"The last axis has {len(text)} scales, one an entry; indexed so, the last has "
                    f"shape {tuple(values.shape[-1:])}. Put new axes before it."
                )
        if self.rest is None:
            return Coordinates._made(values, None, text)
        if type(index) is tuple and len(index) == 2 and index[0] is ... and type(index[1]) is int:
            seen = self._seen.of_axis(index[1])
        else:
            seen = self._seen.each(lambda doubles: doubles[index])
        return Coordinates._made(values, self.rest[index], text, seen)

    def unbind(self, dim: int = -1) -> "tuple[Coordinates, ...]":
        """Those of each entry of the last axis, each with the scale of its own, as of a tensor.

        Raises:
            ValueError: ``dim`` is another axis.

        Example:
            >>> y, x = Coordinates([[0.5, 2.0], [1.5, 3.0]]).unbind(-1)
            >>> y.tolist()
            [Fraction(1, 2), Fraction(3, 2)]
        """
        if dim not in (-1, self.ndim - 1):
            raise ValueError(f"dim is {dim}; coordinates are unbound along their last axis, -1.")
        values, text = self.values.unbind(-1), self.scale_text
        rests = (None,) * len(values) if self.rest is None else self.rest.unbind(-1)
        texts = text if isinstance(text, tuple) else (text,) * len(values)
        seen = map(self._seen.of_axis, range(len(values)))
        return tuple(map(Coordinates._made, values, rests, texts, seen))

    def to(self, device: torch.device | str) -> "Coordinates":
        """The same on another device.

        Raises:
            TypeError: ``device`` is a dtype; ``floats`` makes numbers of coordinates.
        """
        if isinstance(device, torch.dtype):
            raise TypeError(f"Coordinates have no dtype; for floats call .floats({device}).")
        if self.values.device == device:
            return self
        given = self if has_float64(torch.device(device)) else self._without_doubles()
        return given._each(lambda words: words.to(device))

    def _without_doubles(self) -> "Coordinates":
        seen = Seen(self._seen.below, None)
        return Coordinates._made(self.values, self.rest, self.scale_text, seen)

    def unsqueeze(self, dim: int) -> "Coordinates":
        """With one axis more, as of a tensor."""
        self._check_one_scale("unsqueeze")
        return self._each(lambda words: words.unsqueeze(dim))

    def expand(self, *sizes: int) -> "Coordinates":
        """Repeated without a copy, as of a tensor."""
        return self._each(lambda words: words.expand(*sizes))

    def clamp(self, *, min: int) -> "Coordinates":
        """None below 0, as of a tensor; 0 is the bound that every scale has.

        Raises:
            ValueError: ``min`` is another number.
        """
        if min != 0:
            raise ValueError(f"min is {min}; coordinates are clamped at 0 alone.")
        _check_no_marks(self)
        rest = None if self.rest is None else self.rest.where(self.values >= 0, 0)
        return Coordinates._made(self.values.clamp(min=0), rest, self.scale_text)

    def floats(self, dtype: torch.dtype = torch.float64) -> Float[Tensor, "*shape"]:
        """As floats: within 3 units in the last place of float64, and one rounding to ``dtype``.

        Fewer than 2^53 steps of a power of two are exact in float64.

        Raises:
            TypeError: ``dtype`` is no floating one.
            ValueError: A number is beyond the largest of ``dtype``, as far as can be seen.

        Example:
            >>> Coordinates(torch.tensor([1, 2]), scale=Fraction(1, 3)).floats(torch.float32)
            tensor([0.3333, 0.6667])
        """
        dtype = floating(dtype)
        values, rest = self.values, self.rest
        if not (values.is_cpu or has_float64(values.device)):
            return self.to("cpu").floats(dtype).to(values.device)
        if values.numel() > CHUNK and isinstance(self.scale_text, str) and may_look(values):
            return self._floats_in_chunks(dtype)
        return scaled(doubles_of(values, rest, self._seen), factors(self.scale_text), dtype)

    def _floats_in_chunks(self, dtype: torch.dtype) -> Tensor:
        scale, doubles = factors(self.scale_text), self._seen.doubles
        made = torch.empty(self.shape, dtype=dtype, device=self.device)
        given = (self.values, self.rest) if doubles is None else (doubles,)
        chunks = (each.reshape(-1).split(CHUNK) for each in (made, *given) if each is not None)
        for to, steps, *rest in zip(*chunks, strict=True):
            wide = as_floats(steps, *rest) if rest else steps.to(torch.float64, copy=True)
            scaled(wide, scale, dtype, out=to)
        return made

    def tolist(self) -> Any:
        """As fractions, exactly, in lists."""
        return as_fractions(self._counts(), self._finest)

    # In order -------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.lt)

    def __le__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.le)

    def __gt__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.gt)

    def __ge__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.ge)

    def __eq__(self, other: Any) -> Bool[Tensor, "*shape"]:  # type: ignore[override]
        return self._compared(other, torch.eq)

    def __ne__(self, other: Any) -> Bool[Tensor, "*shape"]:  # type: ignore[override]
        return self._compared(other, torch.ne)

    __hash__ = object.__hash__

    def ranked(self, other: "Coordinates") -> tuple[Int64[Tensor, "*shape"], ...]:
        """The rank of each among these and ``other`` together, equal ones alike, and of each other.

        Example:
            >>> Coordinates([0.5, 0.1]).ranked(Coordinates([0.5]))
            (tensor([1, 0]), tensor([1]))
        """
        here, there = common_scale(self, other)
        return ranks(here._words(), there._words())

    def _compared(self, other: Any, relation: Callable[..., Tensor]) -> Any:
        if _is_number(other) and not is_dynamo_compiling():
            return self._compared_with_number(other, relation)
        others = _as_coordinates(other, self.device)
        if others is None:
            return NotImplemented
        here, there = common_scale(self, others)
        if here.rest is None and there.rest is None:
            return relation(here.values, there.values)
        return compared(here._words(), there._words(), relation)

    def _compared_with_number(
        self, other: Rational, relation: Callable[..., Tensor]
    ) -> Bool[Tensor, "*shape"]:
        if isinstance(self.scale_text, tuple):
            axes = [self[..., axis] for axis in range(len(self.scale_text))]
            return torch.stack([axis._compared_with_number(other, relation) for axis in axes], -1)
        count, rest = self._bound(other, relation)
        if not NOWHERE <= count <= MOST:  # all are as 0 is to it
            return relation(torch.zeros_like(self.values), 1 if count > 0 else -1)
        if self.rest is None or (rest == 0 and relation in (torch.lt, torch.ge)):
            return relation(self.values, count)
        same = self.values == count
        return torch.where(same, relation(self.rest, rest), relation(self.values, count))

    def _bound(self, other: Rational, relation: Callable[..., Tensor]) -> tuple[int, int]:
        """The whole number, and the rest, that counts have this relation to where coordinates have
        it to ``other``.

        n < x is n < ⌈x⌉ and n ≤ x is n ≤ ⌊x⌋ for whole n, and n = x is n = ∞ where x is not whole;
        of coordinates with rests, n counts units of these.
        """
        above, below = steps_of(other, self._one_scale("A number"))
        above = above << REST_BITS if self.rest is not None else above
        if above % below and relation in (torch.eq, torch.ne):
            return MOST + 1, 0
        bound = -(-above // below) if relation in (torch.lt, torch.ge) else above // below
        return divmod(bound, 1 << REST_BITS) if self.rest is not None else (bound, 0)

    # Exact arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Coordinates":
        """The exact sum with a whole number, a ``Fraction``, whole positions or coordinates.

        Raises:
            ValueError: It takes more steps than int64 holds.
        """
        moved = self._moved(other) if self._meets_number(other) else None
        if moved is not None:
            return moved
        others = _as_coordinates(other, self.device)
        if others is None:
            return NotImplemented
        _check_no_marks(self, others)
        here, there = common_scale(self, others)
        if here.rest is None and there.rest is None:
            if adds_up(here.values, there.values, MOST):
                return Coordinates._made(here.values + there.values, None, here.scale_text)
            here, there = here._lengthened(), there._lengthened()
        one, other = here._words(), there._words()
        if not adds_up(one.steps, other.steps, MOST - 1):  # rests may carry
            raise ValueError(
                "A sum of coordinates takes more than 125 bits. Count from another origin, or in "
                "coarser steps, as Coordinates.rounded(values, step)."
            )
        summed = carried(one.steps + other.steps, one.rest + other.rest)
        return Coordinates._made(*summed, here.scale_text)

    __radd__ = __add__

    def shifted(self, by: Sequence[Rational | int]) -> "Coordinates":
        """The exact sum with a number for each entry of the last axis.

        Raises:
            ValueError: There are not as many numbers as entries, or a sum takes too many steps.

        Example:
            >>> Coordinates([[0.5, 2.0]]).shifted([1, -2]).tolist()
            [[Fraction(3, 2), Fraction(0, 1)]]
        """
        if self.ndim == 0 or self.shape[-1] != len(by):
            raise ValueError(
                f"{len(by)} numbers are to be added to coordinates of shape {tuple(self.shape)}; "
                f"give one for each entry of the last axis."
            )
        if len(by) == 0:
            return self
        at_once = self.values.is_cpu and not is_dynamo_compiling() and all(map(_is_number, by))
        moved = self._moved(tuple(by)) if at_once else None
        if moved is not None:
            return moved
        _check_no_marks(self)
        axes = [self[..., axis] + number for axis, number in enumerate(by)]
        return Coordinates.stack(axes, dim=-1)

    def _moved(self, by: Rational | tuple[Rational | int, ...]) -> "Coordinates | None":
        """The sum with a number, or with one for each entry of the last axis, where steps or rests
        hold it, or steps cut finer; None: it is not so simple."""
        found = shift(self.scale_text, by, self.rest is not None)  # type: ignore[arg-type]
        if found is None:
            return None
        size = self._seen.below if self._seen.below <= NEAR else size_of(self.values)
        if size is None or max(size, 1) * found.finest + found.farthest >= MOST - 1:
            return None
        values = self.values if found.finest == 1 else self.values * whole_row(found.cuts)
        values = values + whole_row(found.counts)
        rest = self.rest
        if rest is not None and found.rests != 0:
            values, rest = carried(values, rest + whole_row(found.rests))
        return Coordinates._made(values, rest, found.text)

    def _meets_number(self, other: Any) -> bool:
        """Whether ``other`` is a number, and can be counted in steps of the one scale."""
        one = isinstance(self.scale_text, str) and not is_dynamo_compiling()
        return one and _is_number(other)

    def differences(self, other: "Coordinates") -> "Coordinates":
        """Each less each of ``other``, exactly: ``self[..., :, None] - other[..., None, :]``.

        Raises:
            ValueError: One takes more steps than int64 holds.

        Example:
            >>> Coordinates([0.5, 2.0]).differences(Coordinates([0.5, 1.0])).tolist()
            [[Fraction(0, 1), Fraction(-1, 2)], [Fraction(3, 2), Fraction(1, 1)]]
        """
        here, there = common_scale(self, other)
        here._check_one_scale("A difference of all pairs")
        if not adds_up(here.values, there.values, MOST - 1):
            return here.unsqueeze(-1) - there.unsqueeze(-2)  # in steps of 2^62, or an error
        if here.rest is None and there.rest is None:
            return Coordinates._made(pairs(here.values, there.values), None, here.scale_text)
        return Coordinates._made(*differences(here._words(), there._words()), here.scale_text)

    def float_differences(
        self, other: "Coordinates", dtype: torch.dtype = torch.float64
    ) -> Float[Tensor, "*shape rows columns"]:
        """``differences(other).floats(dtype)``, faster where there are rests.

        With rests float64 is the nearest below 2^32 steps, and off by one unit at most beyond.

        Raises:
            ValueError: A difference takes more steps than int64 holds, or is beyond the largest
                number of ``dtype``, as far as can be seen.

        Example:
            >>> tenths = Coordinates([0.1, 3600.1])
            >>> tenths.float_differences(tenths)
            tensor([[    0., -3600.],
                    [ 3600.,     0.]], dtype=torch.float64)
        """
        dtype = floating(dtype)
        here, there = common_scale(self, other)
        if here.rest is None and there.rest is None:
            return here.differences(there).floats(dtype)
        here._check_one_scale("A difference of all pairs")
        return differences_of_two_parts(here, there, dtype)

    def __neg__(self) -> "Coordinates":
        size = self._seen.below if self._seen.below <= NEAR else size_of(self.values)
        if size is not None and size > MOST - MANY:
            _check_no_marks(self)
        # −2^63 has no opposite in steps as small.
        given = self._lengthened() if size == MOST + 1 else self
        if given.rest is None:
            return given._each(torch.neg)
        words, seen = negative(given._words()), given._seen.each(torch.neg)
        return Coordinates._made(*words, given.scale_text, seen)

    def __sub__(self, other: Any) -> "Coordinates":
        """The exact difference."""
        moved = self._moved(-exact(other)) if self._meets_number(other) else None
        if moved is not None:
            return moved
        others = _as_coordinates(other, self.device)
        return NotImplemented if others is None else self + (-others)

    def __rsub__(self, other: Any) -> "Coordinates":
        return -self + other

    def __mul__(self, other: Any) -> "Coordinates":
        """The exact product with a whole number or a ``Fraction``."""
        if isinstance(other, float):
            raise _float_met(f"{other!r}")
        if not _is_number(other):
            return NotImplemented
        if other == 0:
            _check_no_marks(self)
            return Coordinates(torch.zeros_like(self.values))
        text = multiplied(self.scale_text, abs(int(other.numerator)), int(other.denominator))
        made = Coordinates._made(self.values, self.rest, text, self._seen)
        return made if other > 0 else -made

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Coordinates":
        """The exact quotient by a whole number or a ``Fraction``."""
        if not _is_number(other):
            return NotImplemented
        return self * (1 / exact(other))

    def with_scale(self, scale: Rational) -> "Coordinates":
        """The same coordinates in other steps, as for a graph that shall not be compiled anew.

        Raises:
            ValueError: One of them is no whole number of steps, or of too many.

        Example:
            >>> Coordinates([0.0, 0.5]).with_scale(Fraction(1, 64)).values
            tensor([ 0, 32])
        """
        chosen = checked_scale(scale, None)
        assert isinstance(chosen, Fraction)
        if isinstance(self.scale_text, tuple):  # one an axis
            axes = range(len(self.scale_text))
            return Coordinates.stack([self[..., i].with_scale(chosen) for i in axes], dim=-1)
        if self.rest is not None:
            return self._with_one_part(chosen)
        times = self._one_scale("with_scale") / chosen
        if times != 1:
            _check_no_marks(self)
        if times.denominator > MOST:
            return self._with_one_part(chosen)
        if times.denominator != 1 and not may_look(self.values):
            raise TypeError("Nobody can look whether these are whole numbers of coarser steps.")
        if times.denominator != 1 and bool((self.values % times.denominator != 0).any()):
            raise ValueError(
                f"A coordinate is no whole number of steps of {chosen}; they go in steps of "
                f"{self.scale}. Coordinates.rounded(floats, step) takes the nearest."
            )
        values = self.values // times.denominator if times.denominator != 1 else self.values
        if not _holds(Coordinates(values), times.numerator):
            raise ValueError(
                f"Coordinates, each cut into {times.numerator} steps of {chosen}, take more than "
                f"63 bits. Give a coarser step, as Coordinates.rounded(values, step)."
            )
        return Coordinates(_times_whole(values, times.numerator), scale=chosen)

    def _with_one_part(self, step: Fraction) -> "Coordinates":
        """The same in steps that need no rest, by Python's integers."""
        if not may_look(self.values):
            raise TypeError("Nobody can look whether these are whole numbers of coarser steps.")
        self._check_one_scale("with_scale")
        times = product(self._finest, 1 / step)
        assert isinstance(times, Fraction)
        counts = [count * times for count in self._flat_counts()]
        if any(count.denominator != 1 or abs(count) > MOST for count in counts):
            raise ValueError(
                f"A coordinate is no whole number of steps of {step}, or one of more than 63 bits. "
                f"Coordinates.rounded(coordinates.tolist(), step) takes the nearest."
            )
        whole = torch.tensor([int(count) for count in counts], device=self.device)
        return Coordinates(whole.to(torch.int64).view(self.shape), scale=step)

    def _flat_counts(self) -> list[int]:
        return self._each(lambda words: words.flatten(), ONE)._counts()

    def window(self, reach: int) -> int:
        """The least number of steps that is ``reach`` or more, for comparing distances.

        Example:
            >>> Coordinates([0.25]).window(3)
            12
        """
        return min(ceil(reach / self._one_scale("window")), MOST)

    def _one_scale(self, operation: str) -> Fraction:
        self._check_one_scale(operation)
        scale = self.scale
        assert isinstance(scale, Fraction)
        return scale

    def _texts(self) -> tuple[str, ...]:
        """The scale of each entry of the last axis."""
        text = self.scale_text
        return text if isinstance(text, tuple) else (text,) * self.shape[-1]

    def _check_one_scale(self, operation: str) -> None:
        if isinstance(self.scale_text, tuple):
            raise ValueError(
                f"{operation} takes coordinates of one scale; these have {len(self.scale_text)}, "
                f"one an axis. Take an axis first, as coordinates[..., 0]."
            )

    # Together -------------------------------------------------------------------------------------

    @staticmethod
    def stack(parts: Sequence["Coordinates"], dim: int = 0) -> "Coordinates":
        """As ``torch.stack``; along a new last axis (``dim=-1``) each part keeps its own scale.

        Raises:
            ValueError: A part has a scale an axis, and its last axis would be the last no more.

        Example:
            >>> y, x = Coordinates([0.5, 1.5]), Coordinates([0, 1])
            >>> Coordinates.stack([y, x], dim=-1)
            Coordinates(tensor([[1, 0],
                    [3, 1]]), scale=(Fraction(1, 2), Fraction(1, 1)))
        """
        last = dim in (-1, parts[0].ndim)
        texts = tuple(part.scale_text for part in parts if isinstance(part.scale_text, str))
        if last and len(texts) == len(parts):
            scale = texts[0] if len(set(texts)) == 1 else texts
            return _together(parts, lambda words: torch.stack(words, dim=-1), scale)
        alike = common_scale(*parts)
        if last:
            alike[0]._check_one_scale("stack along a new last axis")
        _check_places(parts, alike)
        return _together(alike, lambda words: torch.stack(words, dim), alike[0].scale)

    @staticmethod
    def cat(parts: Sequence["Coordinates"], dim: int = 0) -> "Coordinates":
        """As ``torch.cat``, at the coarsest scale that all parts are whole numbers of.

        Along the last axis each part keeps its own, where one has a scale an axis.

        Raises:
            ValueError: A part takes more than 124 bits there.

        Example:
            >>> Coordinates.cat([Coordinates([0.5]), Coordinates([Fraction(1, 3)])])
            Coordinates(tensor([3, 2]), scale=Fraction(1, 6))
        """
        if dim in (-1, parts[0].ndim - 1) and any(isinstance(p.scale_text, tuple) for p in parts):
            texts = [text for part in parts for text in part._texts()]
            return _together(parts, lambda words: torch.cat(words, dim), tuple(texts))
        alike = common_scale(*parts)
        _check_places(parts, alike)
        return _together(alike, lambda words: torch.cat(words, dim), alike[0].scale)


def _together(
    parts: Sequence[Coordinates], join: Callable[[list[Tensor]], Tensor], scale: Step | Text
) -> Coordinates:
    values = join([part.values for part in parts])
    if all(part.rest is None for part in parts):
        return Coordinates._made(values, None, scale)
    seen = [part._seen for part in parts]
    several = [each.doubles for each in seen]
    doubles = None if any(each is None for each in several) else join(several)  # type: ignore[arg-type]
    rest, below = join([part._words().rest for part in parts]), max(each.below for each in seen)
    return Coordinates._made(values, rest, scale, Seen(below, doubles))


def _check_places(parts: Sequence[Coordinates], alike: Sequence[Coordinates]) -> None:
    """Refuse to give tokens that stand nowhere another scale: their marks are no counts of steps.

    Raises:
        ValueError: Some do, and would be given one.
    """
    given = zip(parts, alike, strict=True)
    _check_no_marks(*(part for part, other in given if other is not part))


def _check_no_marks(*parts: Coordinates) -> None:
    """Refuse points that stand nowhere, as far as can be seen: what is made of them would stand.

    Raises:
        ValueError: All coordinates of a point are marks, as ``prefixed`` makes them.
    """
    for part in parts:
        if part.ndim < 2 or not may_look(part.values) or not part.numel():
            continue
        if bool((part.values < NOWHERE + MANY).all(-1).any()):
            raise ValueError(
                "A token that stands nowhere, as a class token of posenc.positions.prefixed, "
                "cannot be moved. Put such tokens before the points at last."
            )


def differences_of_one_part(
    here: Coordinates, there: Coordinates, dtype: torch.dtype
) -> Float[Tensor, "*shape rows columns"] | None:
    """The same without rests, if float64 is known to hold the steps and their differences."""
    steps, others = here.values, there.values
    reach = reach_of(steps, others) if steps.is_cpu else None  # elsewhere a look would wait
    if reach is None or reach > EXACT:
        return None
    one = steps.double()
    other = one if others is steps else others.double()
    return float_pairs(one, other, factors(here.scale_text), dtype)


def differences_of_two_parts(
    here: Coordinates, there: Coordinates, dtype: torch.dtype
) -> Float[Tensor, "*shape rows columns"]:
    """``Coordinates.float_differences`` of coordinates at one scale, some of them with rests."""
    steps, others = here.values, there.values
    if not (steps.is_cpu or has_float64(steps.device)):
        return here.differences(there).floats(dtype)
    mine, theirs = here._seen, there._seen
    below = max(mine.below, theirs.below)
    if below > NEAR:
        reach = reach_of(steps, others)
        if reach is not None and 2 * reach >= MOST and not adds_up(steps, others, MOST - 1):
            return here.differences(there).floats(dtype)  # in steps of 2^62, or an error
        below = FARTHEST if reach is None else reach + 1
    scale = factors(here.scale_text)
    looked, count = may_look(steps), steps.numel() * others.shape[-1]
    few, long = looked and count <= FEW_PAIRS, below > LONG
    first = mine.doubles
    second = first if there is here else theirs.doubles
    if first is not None and second is not None:
        return float_pairs(first, second, scale, dtype)
    one = here._words()
    other = one if there is here else there._words()
    if few and dtype is not torch.float64:
        return scaled(few_float_differences(one, other), scale, dtype)
    if looked and steps.is_cpu and count >= 2 * BLOCK:
        own = partial(differences_of_rows, other=other, long=long)
        return in_blocks(own, one, others, scale, dtype)
    return scaled(float_differences(one, other, long=long, few=few and not long), scale, dtype)


def common_scale(*given: Coordinates) -> tuple[Coordinates, ...]:
    """The same coordinates, all in steps of one size.

    Raises:
        ValueError: One takes more than 124 bits there; or some have a scale an axis, and others of
            another number.

    Example:
        >>> halves, thirds = common_scale(Coordinates([0.5]), Coordinates([Fraction(1, 3)]))
        >>> halves.values, thirds.values, thirds.scale
        (tensor([3]), tensor([2]), Fraction(1, 6))
    """
    if len({each.scale_text for each in given}) == 1:
        return given
    scales = [each.scale for each in given]
    axes = {len(scale) for scale in scales if isinstance(scale, tuple)}
    if len(axes) > 1:
        raise ValueError(
            f"Coordinates have {' and '.join(map(str, sorted(axes)))} axes; they must have as many."
        )
    if not axes:
        return _in_one_step(given)
    given = tuple(_of_axes(each, *axes) for each in given)
    columns = [_in_one_step([each[..., axis] for each in given]) for axis in range(*axes)]
    return tuple(Coordinates.stack(row, dim=-1) for row in zip(*columns, strict=True))


def _of_axes(each: Coordinates, axes: int) -> Coordinates:
    """With so many entries in the last axis, where one stands for all of them."""
    values = each.values
    if values.ndim and values.shape[-1] == axes:
        return each
    return each._each(lambda words: words.expand(*values.shape[:-1], axes), each.scale)


def _in_one_step(given: Sequence[Coordinates]) -> tuple[Coordinates, ...]:
    if len({each.scale for each in given}) == 1:
        return tuple(given)
    finest = [each._finest for each in given]
    step = step_of_all([one for one in finest if isinstance(one, Fraction)])
    times = [(one / step).numerator for one in finest if isinstance(one, Fraction)]
    if all(each.rest is None for each in given) and all(map(_holds, given, times)):
        several = zip(given, times, strict=True)
        return tuple(Coordinates(_times_whole(each.values, n), scale=step) for each, n in several)
    long = next((each for each in given if each.rest is not None and each._finest == step), None)
    if long is None:
        return _by_integers(given, times, step)
    # Distances of every pair meet a window: these are not touched.
    several = zip(given, times, strict=True)
    return tuple(each if each.scale == long.scale else _like(long, each, n) for each, n in several)


def _by_integers(
    given: Sequence[Coordinates], times: Sequence[int], step: Fraction
) -> tuple[Coordinates, ...]:
    """All in one step by Python's integers, which hold whatever they come to."""
    flat = [[n * k for n in _seen(each)] for each, k in zip(given, times, strict=True)]
    (values, rest), scale = words_of([n for counts in flat for n in counts], step, "cpu")
    sizes = [len(counts) for counts in flat]
    rests = [None] * len(sizes) if rest is None else rest.split(sizes)
    return tuple(
        Coordinates._made(values, rest, scale).with_words(
            lambda words, each=each: words.view(each.shape).to(each.device)
        )
        for each, values, rest in zip(given, values.split(sizes), rests, strict=True)
    )


def _like(long: Coordinates, each: Coordinates, times: int) -> Coordinates:
    """Coordinates in the words of others, whose finest step theirs is ``times`` as large as."""
    words = of_integers([n * times for n in _seen(each)], each.device)
    steps, rest = (word.view(each.shape) for word in words)
    return Coordinates._made(steps, rest, long.scale)


def _seen(each: Coordinates) -> list[int]:
    if not may_look(each.values):
        raise TypeError(
            f"Coordinates in steps of {each.scale} meet others of more than 63 bits where nobody "
            f"can look at them. Bring them to one scale before."
        )
    return each._flat_counts()


def _holds(each: Coordinates, times: int) -> bool:
    """Whether an int64 holds values · times, as far as can be seen."""
    if times != 1 and graph_looks(each.values):
        most = MOST // times
        inside = ((each.values <= most) & (each.values >= -most)).all()
        demand(inside, f"Coordinates, each cut into {times} steps, take more than 63 bits.")
    if times == 1 or not may_look(each.values) or not each.numel():
        return True
    low, high = (int(end) for end in each.values.aminmax())
    return max(-low, high) * times <= MOST


def _times_whole(values: Tensor, times: int) -> Tensor:
    if times > MOST:
        if not (may_look(values) or values.is_meta):
            raise TypeError(f"Coordinates are to be cut into {times} steps each, unseen.")
        return torch.zeros_like(values)  # as all of them are
    return values if times == 1 else values * times


def _is_number(other: Any) -> bool:
    if type(other) is int:  # at once, as most are
        return True
    return isinstance(other, Rational) and not isinstance(other, bool)


def _as_coordinates(other: Any, device: torch.device) -> Coordinates | None:
    """Whole numbers, fractions and whole positions as coordinates; nothing of floats is guessed.

    Raises:
        TypeError: Of floats: which number is meant is for the caller to say.
    """
    if isinstance(other, Coordinates):
        return other
    kind = getattr(getattr(other, "dtype", None), "kind", None)  # of what numpy has made
    if kind in ("i", "u") and not isinstance(other, Rational):
        return Coordinates(other, device=device)
    if isinstance(other, Tensor):
        if other.is_floating_point():
            raise _float_met(f"a tensor of {other.dtype}")
        return Coordinates(other)
    if isinstance(other, float) or kind == "f":
        raise _float_met(f"{other!r}")
    if isinstance(other, list | tuple):
        raise TypeError(f"Coordinates meet a {type(other).__name__}; make it Coordinates(…), too.")
    if not _is_number(other):
        return None
    number = exact(other)
    if abs(number.numerator) > MOST:
        raise ValueError(f"{other} has a numerator of more than 63 bits.")
    one = torch.tensor(number.numerator, dtype=torch.int64, device=device)
    return Coordinates(one, scale=Fraction(1, number.denominator))


def _float_met(what: str) -> TypeError:
    return TypeError(
        f"Coordinates meet {what}; say which number is meant: Coordinates(…) takes a float as the "
        f"binary fraction that it is, and Fraction(1, 10) is a tenth."
    )
