"""The rotation that a function makes of a head: pairs, angles and factor, from unit vectors.

Every channel c is handed over alone, which gives the matrix M(p) of each position p. The rotation
from position 0 is M(0)⁻¹ M(p), in the channels of the input, whatever the order of the outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

EXACT = 1e-10
"""What is no zero: channels of different pairs never mix, so their entries are 0 exactly."""


@dataclass(frozen=True)
class Rotation:
    """What is done to a head."""

    width: int  # channels that are handed over
    pairs: tuple[tuple[int, int], ...]  # the two channels of each pair that turns
    angles: Tensor  # ``[seq, pairs]`` in float64: radians from position 0, up to whole turns
    factor: float  # what all channels that turn are multiplied with
    reorders: bool  # whether the channels come out in another order


def rotation_of(matrices: Tensor) -> Rotation | None:
    """The rotation of which these are the matrices; None where it is none.

    They are ``[seq, width, width]``: what channel j of the input gives in channel i.
    """
    matrices, width = matrices.double(), matrices.shape[-1]
    sizes = matrices[0].norm(dim=0)
    if matrices.shape[1] != width or bool((sizes < 1e-6).any()):
        return None
    try:
        turned = torch.linalg.solve(matrices[:1], matrices)
    except RuntimeError:
        return None
    identity = torch.eye(width, dtype=torch.float64)
    apart = (turned - turned * identity).abs().amax(0)
    pairs = [(a, int(apart[a].argmax())) for a in range(width) if float(apart[a].max()) > EXACT]
    pairs = [(a, b) for a, b in pairs if a < b]
    if not pairs or bool(((apart > EXACT).sum(0) > 1).any()):
        return None
    first, second = torch.tensor(pairs).T
    angles = torch.atan2(turned[:, second, first], turned[:, first, first])
    reorders = not torch.equal(matrices[0].abs().argmax(0), torch.arange(width))
    return Rotation(width, tuple(pairs), angles, float(sizes[first].mean()), reorders)


def matrices_of(turn: Callable[[Tensor], Tensor], like: Tensor, seq: int) -> Tensor | None:
    """``[seq, width, width]`` of a function of heads; None where it gives no rows of positions.

    It takes heads like these: ``[…, width]`` with an axis of ``seq`` positions.
    """
    width = like.shape[-1]
    units = torch.eye(width, dtype=like.dtype).reshape(width, *[1] * (like.ndim - 1), width)
    given = units.expand(width, *like.shape)
    if like.ndim == 4 and len(like) == 1:  # all channels at once, as a batch
        try:
            return _stacked([_rows(each[None], seq) for each in turn(given[:, 0].contiguous())])
        except (RuntimeError, ValueError, IndexError):
            pass  # its angles have a batch of their own
    return _stacked([_rows(turn(each.contiguous()), seq) for each in given])


def _stacked(rows: list[Tensor | None]) -> Tensor | None:
    found = [each for each in rows if each is not None and each.shape[-1] == len(rows)]
    return torch.stack(found, -1) if len(found) == len(rows) else None


def _rows(out: Tensor, seq: int) -> Tensor | None:
    """``[seq, width]`` of the first head."""
    axes = [axis for axis in range(out.ndim - 1) if out.shape[axis] == seq]
    if not axes:
        return None
    rows = out.movedim(axes[-1], 0)
    return rows.reshape(seq, -1, out.shape[-1])[:, 0]
