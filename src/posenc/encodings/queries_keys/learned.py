"""What learned rotations of points share: angles and matrices in float64, rounded once."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.shapes import Dtype
from posenc.guards import floating
from posenc.positions import Positions, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class LearnedRotation(QueryKeyEncoding):
    """Heads rotated at points ``[*batch, seq, axes]`` by learned angles and matrices, in float64.

    Tokens that stand nowhere are at 0, where nothing is rotated.
    """

    is_relative = takes_reals = True

    def __init__(self, head_dim: int, axes: int, heads_first: bool, least: int = 2):
        super().__init__()
        check_whole(least, head_dim=head_dim)
        check_whole(axes=axes)
        self.head_dim, self.axes, self.heads_first = head_dim, axes, heads_first

    def points(self, positions: Tensor | Positions) -> Float[Tensor, "*shape axes"]:
        """``positions`` as float64, on the CPU where their device has none."""
        points, _ = among_places(checked_points(positions, self.axes))
        return in_float64(points)


class LearnedAngles(LearnedRotation):
    """Pairs rotated by learned angles."""

    cos_axis = -2
    """The axis of a table that tells cosines from sines."""

    @abstractmethod
    def angles(self, points: Float[Tensor, "*shape axes"]) -> Float[Tensor, "*shape _"]:
        """The angle of each pair at each point."""

    def table(self, positions: Tensor | Positions, *, dtype: Dtype = None) -> Float[Tensor, "..."]:
        angles = self.angles(self.points(positions))
        table = torch.stack((angles.cos(), angles.sin()), dim=self.cos_axis)
        return table.to(floating(dtype)).to(next(self.parameters()).device)
