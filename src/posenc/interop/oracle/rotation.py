"""The rotation that a function makes of a head: pairs, frequencies and factor, from unit vectors.

Every channel c is handed over alone, which gives the matrix M(p) of each position p. The rotation
from position 0 is M(0)⁻¹ M(p), in the channels of the input, whatever the order of the outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Literal

import torch
from torch import Tensor

POSITIONS = (0, 1, 8, 64, 512, 4096, 32768)
"""Near, where every pair tells how fast it is, and far, where slow ones tell it precisely."""

EXACT = 1e-10
"""What is no zero: channels of different pairs never mix, so their entries are 0 exactly."""


@dataclass(frozen=True)
class Rotation:
    """What is done to a head."""

    width: int  # channels that are handed over
    pairs: tuple[tuple[int, int], ...]  # the two channels of each pair that turns
    frequencies: Tensor  # ``[pairs]`` in float64: radians a position; below 0 they turn backwards
    factor: float  # what all channels that turn are multiplied with
    # of each pair, the axis of positions that it follows; None where there is one axis
    axes: tuple[int, ...] | None = None
    reorders: bool = False  # whether the channels come out in another order

    @property
    def pairing(self) -> Literal["half", "interleaved"] | None:
        """How channels are paired; None where they are in neither of the usual ways."""
        apart = {b - a for a, b in self.pairs}
        if apart == {1} and all(a % 2 == self.pairs[0][0] % 2 for a, _ in self.pairs):
            return "interleaved"
        return "half" if len(apart) == 1 else None


def rotation_of(matrices: Tensor, positions: Tensor) -> Rotation | None:
    """The rotation of which these are the matrices; None where it is none.

    Matrices are ``[seq, width, width]``: what channel j of the input gives in channel i. Positions
    are ``[seq]``, or ``[axes, seq]``; the first is 0 in all axes.
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
    rows = positions[None] if positions.ndim == 1 else positions
    by_axis = torch.stack([_frequencies(angles, row, rows) for row in rows])
    axes = by_axis.abs().argmax(0)
    reorders = not torch.equal(matrices[0].abs().argmax(0), torch.arange(width))
    return Rotation(
        width,
        tuple(pairs),
        by_axis.gather(0, axes[None])[0],
        float(sizes[first].mean()),
        None if len(rows) == 1 else tuple(axes.tolist()),
        reorders,
    )


def _frequencies(angles: Tensor, row: Tensor, rows: Tensor) -> Tensor:
    """How fast each pair follows one axis, by positions at which the others are 0."""
    alone = [i for i in range(len(row)) if row[i] > 0 and rows[:, i].sum() == row[i]]
    alone.sort(key=lambda i: int(row[i]))
    found = angles[alone[0]] / row[alone[0]]
    for i in alone[1:]:
        near = found.abs() * row[i] < pi / 2
        found = torch.where(near, angles[i] / row[i], found)
    return found


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
