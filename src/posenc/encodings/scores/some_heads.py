"""The bias of some heads, for a rank that computes no others."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import RelativeBias, ScoreBias


def some_heads(bias: ScoreBias, start: int, stop: int) -> ScoreBias:
    """Heads ``start`` … ``stop`` − 1 of a bias, bit for bit, as a bias of its own.

    For head-parallel (tensor-parallel, Ulysses) execution: a rank builds the bias of the whole
    model and holds the part that belongs to its heads. Parameters are shared with ``bias``.

    Args:
        bias: The bias of all heads.
        start: First head of the part.
        stop: One past its last.

    Raises:
        TypeError: ``bias`` depends on queries or keys; it is no number to add.
        ValueError: The range is empty, or not one of its heads.

    Example:
        >>> from posenc import ALiBi
        >>> whole, part = ALiBi(8), some_heads(ALiBi(8), 2, 4)
        >>> distance = torch.arange(5)
        >>> torch.equal(part.profile(distance), whole.profile(distance)[2:4])
        True
    """
    if not isinstance(bias, ScoreBias):
        raise TypeError(
            f"bias is a {type(bias).__name__}, which needs queries or keys; only a ScoreBias can "
            f"be cut by head. Build one for the heads of this rank, with their parameters."
        )
    if not 0 <= start < stop <= bias.heads:
        raise ValueError(
            f"Heads {start} to {stop} were asked of {bias.heads}; give 0 ≤ start < stop ≤ "
            f"{bias.heads}."
        )
    kind = SomeRelativeHeads if isinstance(bias, RelativeBias) else SomeHeads
    return kind(bias, start, stop)  # type: ignore[arg-type]


class SomeHeads(ScoreBias):
    """Part of a bias; see ``some_heads``."""

    def __init__(self, of: ScoreBias, start: int, stop: int):
        super().__init__()
        self.of, self.start, self.stop = of, start, stop
        self.heads, self.is_relative = stop - start, of.is_relative

    def table(
        self,
        q_positions: Int64[Tensor, "..."],
        k_positions: Int64[Tensor, "..."],
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """The table of these heads."""
        table = self.of.table(q_positions, k_positions, dtype=dtype)
        return table[..., self.start : self.stop, :, :]

    def extra_repr(self) -> str:
        """The range."""
        return f"{self.start}, {self.stop}"


class SomeRelativeHeads(RelativeBias):
    """Part of a relative bias, and relative itself; see ``some_heads``."""

    def __init__(self, of: RelativeBias, start: int, stop: int):
        super().__init__()
        self.of, self.start, self.stop = of, start, stop
        self.heads = stop - start

    def profile(
        self, distance: Int64[Tensor, "*shape"], *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The profile of these heads."""
        return self.of.profile(distance, dtype=dtype)[self.start : self.stop]

    def extra_repr(self) -> str:
        """The range."""
        return f"{self.start}, {self.stop}"
