"""Where a table has its cosines and its sines."""

from typing import Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor


class Columns(NamedTuple):
    """Cosines and sines as they lie in a table.

    Attributes:
        table: ``[*shape, 2, frequencies]``, or ``[*shape, frequencies, 2]`` where each cosine has
            its sine beside it.
        axis: The axis of two that tells cosines from sines.
        cos_first: Whether cosines are the first of these two.
    """

    table: Float[Tensor, "..."]
    axis: Literal[-2, -1] = -2
    cos_first: bool = True

    @property
    def cos_place(self) -> int:
        """Where the first cosine lies, in elements from the beginning of the table."""
        return 0 if self.cos_first else self.table.stride(self.axis)

    @property
    def cos(self) -> Float[Tensor, "*shape frequencies"]:
        """A view of the cosines."""
        return self.table.select(self.axis, 0 if self.cos_first else 1)

    @property
    def sin(self) -> Float[Tensor, "*shape frequencies"]:
        """A view of the sines."""
        return self.table.select(self.axis, 1 if self.cos_first else 0)


class Channels(NamedTuple):
    """Which channels of a table are cosines and sines."""

    first: int  # the first of them
    pairs: int  # number of cosines, and of sines
    axis: Literal[-2, -1]  # as of Columns
    cos_first: bool  # as of Columns

    def of(self, table: Float[Tensor, "*shape dim"]) -> Columns:
        """Their columns of a table; other channels are left alone."""
        first, pairs, axis, cos_first = self
        if 2 * pairs != table.shape[-1]:
            table = table[..., first : first + 2 * pairs]
        sides = (pairs, 2) if axis == -1 else (2, pairs)
        return Columns(table.view(*table.shape[:-1], *sides), axis, cos_first)


def channels_of(cosines: range, sines: range) -> Channels:
    """The place of cosines, and of as many sines: all beside them, or all before or after them."""
    count, step, apart = len(cosines), cosines.step, sines.start - cosines.start
    axis = {(1, count): -2, (2, 1): -1}.get((step, abs(apart)))
    if axis is None or len(sines) != count or sines.step != step:
        raise ValueError(f"Cosines are {cosines} and sines {sines}; they alternate or are halves.")
    return Channels(min(cosines.start, sines.start), count, axis, apart > 0)  # type: ignore[arg-type]
