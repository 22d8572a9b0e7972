"""What changes of positions share: the check of their arguments, and draws from a generator."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.positions import checked


def checked_most(value: int, name: str, least: int) -> int:
    """A whole number of at least ``least``.

    Raises:
        ValueError: It is none.

    Example:
        >>> checked_most(2048, "longest", 1)
        2048
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from {least} on.")
    return value


def checked_row(
    positions: Int64[Tensor, "*batch seq"], longest: int, *, name: str
) -> Int64[Tensor, "*batch seq"]:
    """Positions within 0 … seq − 1, fewer than ``longest``.

    Raises:
        TypeError: They are not integers.
        ValueError: There are too many, or one is outside.

    Example:
        >>> checked_row(torch.arange(3), 2, name="PoSE")
        Traceback (most recent call last):
        ...
        ValueError: A row has 3 tokens; PoSE(longest=2) has room for 2. Make longest at least 3.
    """
    positions = checked(positions)
    seq = positions.shape[-1]
    if seq > longest:
        raise ValueError(
            f"A row has {seq} tokens; {name}(longest={longest}) has room for {longest}. Make "
            f"longest at least {seq}."
        )
    if positions.numel() and may_look(positions):
        first, last = (int(end) for end in positions.aminmax())
        if first < 0 or last >= seq:
            raise ValueError(
                f"Positions run from {first} to {last}; {name} moves those of a row that begins "
                f"at 0, here 0 … {seq - 1}. Apply it before anything is added to positions."
            )
    return positions


def uniform(most: Tensor, generator: torch.Generator) -> Tensor:
    """A whole number from 0 to ``most`` for each entry, all equally likely.

    Example:
        >>> uniform(torch.zeros(3, dtype=torch.int64), torch.Generator())
        tensor([0, 0, 0])
    """
    share = torch.rand(
        most.shape, generator=generator, device=generator.device, dtype=torch.float64
    )
    # A share just below 1 may round up to the bound once multiplied.
    return (share.to(most.device) * (most + 1)).long().minimum(most)
