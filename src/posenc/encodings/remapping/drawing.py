"""What changes of positions share: the check of a row, and draws from a generator."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.encodings.shapes import WholeRow
from posenc.guards import may_look, where_float64
from posenc.positions import checked


def checked_row(positions: WholeRow, longest: int, *, name: str) -> Int64[Tensor, "*batch seq"]:
    """Positions within 0 … seq − 1, of at most ``longest`` tokens."""
    positions = checked(positions)
    seq = positions.shape[-1]
    if seq > longest:
        raise ValueError(f"A row has {seq} tokens; {name}(longest={longest}) has no room for them.")
    if positions.is_cpu and positions.numel() and may_look(positions):
        first, last = (int(end) for end in positions.aminmax())
        if first < 0 or last >= seq:
            raise ValueError(
                f"positions run from {first} to {last}; {name} takes whole rows, 0 … {seq - 1}."
            )
    return positions


def share(
    shape: torch.Size, device: torch.device, generator: torch.Generator | None
) -> Float64[Tensor, "..."]:
    """Numbers from U(0, 1), of the generator or of torch's own, where there is float64."""
    where = where_float64(device)
    if generator is None:  # which a graph of any batch does not take as an argument
        return torch.rand(shape, device=where, dtype=torch.float64)
    drawn = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return drawn.to(where)


def uniform(most: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A whole number from 0 to ``most`` for each entry, all equally likely."""
    drawn = share(most.shape, most.device, generator)
    # A share just below 1 may round up to the bound once multiplied.
    return (drawn * (most + 1).to(drawn.device)).long().to(most.device).minimum(most)
