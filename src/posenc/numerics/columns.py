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


def columns_of(
    table: Float[Tensor, "*shape dim"], cosine_channels: range, sine_channels: range
) -> Columns:
    """The columns of a table whose channels are cosines and sines.

    Args:
        table: What is filled; channels that are in neither range are left alone.
        cosine_channels: Which channels are cosines.
        sine_channels: As many: all beside the cosines, or all before or after them.
    """
    count, step = len(cosine_channels), cosine_channels.step
    apart = sine_channels.start - cosine_channels.start
    first = min(cosine_channels.start, sine_channels.start)
    alike = len(sine_channels) == count and sine_channels.step == step
    whole = 2 * count == table.shape[-1]
    here = table if whole else table[..., first : first + 2 * count]
    if alike and step == 2 and abs(apart) == 1:
        return Columns(here.view(*here.shape[:-1], count, 2), -1, apart > 0)
    if alike and step == 1 and abs(apart) == count:
        return Columns(here.view(*here.shape[:-1], 2, count), -2, apart > 0)
    raise ValueError(
        f"Cosines are {cosine_channels} and sines {sine_channels}; they alternate or are halves."
    )
