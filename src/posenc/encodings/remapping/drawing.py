"""What changes of positions share: the check of a row, and draws from a generator."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.guards import demand, graph_looks, has_float64, may_look, where_float64
from posenc.positions import Integers, checked


def checked_row(
    positions: Int64[Tensor, "*batch seq"] | Integers, longest: int, *, name: str
) -> Int64[Tensor, "*batch seq"]:
    """Positions within 0 … seq − 1, fewer than ``longest``.

    Raises:
        TypeError: They are not integers.
        ValueError: There are too many, or one is outside.

    Example:
        >>> checked_row(range(3), 2, name="PoSE")
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
    if graph_looks(positions):
        whole = ((positions >= 0) & (positions < seq)).all()
        demand(whole, f"{name} remaps positions of a row that begins at 0. Apply it to whole rows.")
    if positions.numel() and may_look(positions):
        first, last = (int(end) for end in positions.aminmax())
        if first < 0 or last >= seq:
            raise ValueError(
                f"Positions run from {first} to {last}; {name} remaps those of a row that "
                f"begins at 0, here 0 … {seq - 1}. Apply it first, and to whole rows."
            )
    return positions


def share(
    shape: torch.Size, device: torch.device, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Numbers from U(0, 1), of the generator, or of torch's own for the device.

    They lie there, or on the CPU where that has no float64.

    Raises:
        ValueError: The generator is of a device without float64.
    """
    where = where_float64(device)
    drawing = where if generator is None else generator.device
    if not has_float64(drawing):
        raise ValueError(
            f"The generator is of {drawing}, which has no float64. Make it as "
            f"torch.Generator(), of the CPU."
        )
    if generator is None:  # which a graph of any batch does not take as an argument
        return torch.rand(shape, device=drawing, dtype=torch.float64).to(where)
    return torch.rand(shape, generator=generator, device=drawing, dtype=torch.float64).to(where)


def uniform(most: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A whole number from 0 to ``most`` for each entry, all equally likely.

    Example:
        >>> uniform(torch.zeros(3, dtype=torch.int64))
        tensor([0, 0, 0])
    """
    drawn = share(most.shape, most.device, generator)
    # A share just below 1 may round up to the bound once multiplied.
    return (drawn * (most + 1).to(drawn.device)).long().to(most.device).minimum(most)
