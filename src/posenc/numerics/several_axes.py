"""cos and sin of Σ_a p_a · ω_a: angles that several coordinates make together."""

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.numerics.phases import Phases, added, cos_sin_of, phases, turn_limbs
from posenc.numerics.rounding import rounded
from posenc.numerics.settling import round_for_certain
from posenc.numerics.sincos import CHUNK_PHASES, SinCos
from posenc.positions import Coordinates


def cos_sin_of_axes(
    parts: Sequence[SinCos],
    positions: Int64[Tensor, "*shape axes"] | Coordinates,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """cos and sin of the sum over axes, rounded once: phases are added while they are integers.

    Compiled graphs are within 0.5000001 units in the last place, as of ``SinCos``.

    Args:
        parts: The frequencies along each axis, as many of each.
        positions: One coordinate an axis.
        dtype: The dtype of the values.

    Example:
        >>> from posenc.frequencies import FromCheckpoint
        >>> one, less = SinCos(FromCheckpoint([1.0])), SinCos(FromCheckpoint([-1.0]))
        >>> cos_sin_of_axes((one, less), torch.tensor([[2**40 + 1, 2**40]]))[0]  # cos 1
        tensor([[0.5403]])
    """
    if positions.device.type == "mps":  # has no float64
        cos, sin = cos_sin_of_axes(parts, positions.to("cpu"), dtype)
        return cos.to(positions.device), sin.to(positions.device)
    axes = [positions[..., axis] for axis in range(len(parts))]
    read = [
        part.of_steps(along) if isinstance(along, Coordinates) else (part, along)
        for part, along in zip(parts, axes, strict=True)
    ]
    limbs = [turn_limbs(part.turns, positions.device) for part, _ in read]
    shape, count = positions.shape[:-1], len(parts[0])
    steps = torch.stack([along.flatten() for _, along in read])
    settles = may_look(steps)

    def at(some: Tensor) -> tuple[Tensor, Tensor]:
        each: list[Phases] = [
            phases(along.unsqueeze(-1), of) for along, of in zip(some, limbs, strict=True)
        ]
        phase = reduce(added, each)
        if settles and dtype != torch.float64:
            return round_for_certain(phase, dtype)
        cos, sin = cos_sin_of(phase)
        return rounded(cos, dtype), rounded(sin, dtype)

    if not settles or steps.shape[1] * count <= CHUNK_PHASES:
        cos, sin = at(steps)
    else:
        rows = max(1, CHUNK_PHASES // count)
        made = [torch.stack(at(some)) for some in steps.split(rows, dim=1)]
        cos, sin = torch.cat(made, dim=1)
    return cos.view(*shape, count), sin.view(*shape, count)
