"""The positional encoding generator of CPVT: a small convolution over the grid."""

from itertools import product
from math import sqrt

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.tokens.neighbors import check_content
from posenc.guards import demand, graph_looks, may_look, widest
from posenc.positions import Integers, checked, placeless

ABSENT = -1
"""A key that no neighbor has: those of a grid are 0 or more."""


class PEG(TokenEncoding):
    """Conditional positions: each channel convolved over the neighborhood, added to the tokens.

    y_p = x_p + b + Σ_o w_o ⊙ x_{p+o},  o in a cube of k^axes displacements around 0

    Edges are seen because nothing lies beyond them; so a model finds out where its patches stand
    at any resolution. Positions are ``[*batch, seq, axes]``, as of ``posenc.positions.grid``: the
    tokens may come in any order, and those that were dropped count as nothing, as what lies beyond
    the edge. Class tokens and registers that stand nowhere (``posenc.positions.prefixed``) stay as
    they are.

    The table is no more than the positions, and a token depends on its neighbors
    (``is_pointwise`` is false): it cannot be encoded alone. Two tokens at one point, as in images
    that are packed in one row, are refused where values can be looked at.

    Args:
        dim: Width of the embeddings.
        kernel: k, odd; 3 in the paper.
        axes: Number of axes: 2 for images, 3 for video as in UniFormer.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or ``kernel`` is even.

    Reference:
        Chu et al. 2023, "Conditional Positional Encodings for Vision Transformers", section 3.2
        (arXiv:2102.10882); Li et al. 2022, "UniFormer", equation 3 (arXiv:2201.04676).

    Example:
        >>> from posenc.positions import grid, prefixed
        >>> encoding = PEG(32)
        >>> encoding(torch.randn(2, 197, 32), prefixed(grid(14, 14))).shape
        torch.Size([2, 197, 32])
    """

    batch_first = True
    keeps_norm = False
    keeps_shift = False
    is_pointwise = False

    def __init__(
        self,
        dim: int,
        kernel: int = 3,
        *,
        axes: int = 2,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(dim=dim, kernel=kernel, axes=axes)
        if kernel % 2 == 0:
            raise ValueError(f"kernel is {kernel}; it must be odd, as 3, to have a middle.")
        check_whole(**{"the number of weights": dim * kernel ** min(axes, 64)})
        self.dim, self.kernel, self.axes = dim, kernel, axes
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(dim, 1, *(kernel,) * axes, **factory))
        self.bias = nn.Parameter(torch.empty(dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both anew, uniform within 1/√k^axes, as torch's depthwise convolutions are."""
        bound = 1 / sqrt(self.kernel**self.axes)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch seq axes"]:
        """The positions themselves, whole numbers whatever ``dtype``: they say who is beside whom.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They have another number of axes.
        """
        points = checked(positions)
        if points.ndim < 2 or points.shape[-1] != self.axes:
            raise ValueError(
                f"positions have shape {tuple(points.shape)}; PEG with axes={self.axes} takes "
                f"[*batch, seq, {self.axes}], as of posenc.positions.grid."
            )
        return points

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Int64[Tensor, "*rows seq axes"],
    ) -> Float[Tensor, "*batch seq dim"]:
        """``x`` and the convolution over its grid, summed in float32 at least and rounded once.

        Raises:
            TypeError: ``x`` is not floating.
            ValueError: It has another width, the table is of other tokens, two tokens stand at one
                point, or points lie so far apart that int64 cannot number them.
        """
        check_content(x, table, name="PEG", dim=self.dim, coordinates=self.axes)
        if not x.numel():
            return x.clone()
        wide = working_dtype(x.dtype)
        content, weights = x.to(wide), self.weight.to(wide).flatten(1).unbind(-1)
        nowhere = placeless(table)
        keys, steps = self._keys(table, nowhere)
        ordered, order = keys.sort(-1)
        _check_distinct(ordered)
        reach = range(-(self.kernel // 2), self.kernel // 2 + 1)
        total = self.bias.to(wide).expand(x.shape)
        for weight, offset in zip(weights, product(reach, repeat=self.axes), strict=True):
            wanted = keys + sum(o * step for o, step in zip(offset, steps, strict=True))
            place = torch.searchsorted(ordered, wanted).clamp(max=keys.shape[-1] - 1)
            there = ordered.gather(-1, place) == wanted
            index = order.gather(-1, place).expand(x.shape[:-1]).unsqueeze(-1)
            near = content.gather(-2, index.expand(x.shape))
            total = total + (near * weight).where(there.unsqueeze(-1), 0.0)
        total = total.where(~nowhere.unsqueeze(-1), 0.0)
        return (content + total).to(x.dtype)

    def _keys(self, points: Tensor, nowhere: Tensor) -> tuple[Tensor, list[Tensor]]:
        """A number for each point, and how it changes with a step along each axis.

        Between the lines of a grid there is room for steps beyond an edge, so that none of them
        arrives at another line.
        """
        mark = nowhere.unsqueeze(-1)
        low = points.masked_fill(mark, 2**62).amin(-2, keepdim=True)
        high = points.masked_fill(mark, -(2**62)).amax(-2, keepdim=True)
        low = torch.minimum(low, high)  # where no token stands anywhere
        room = (high - low + self.kernel).flatten(0, -2).amax(0).unbind()
        apart = (
            "Points lie so far apart that int64 cannot number all between. Give those of one grid."
        )
        wide = widest(points.device)  # a difference of 2^63 wraps in int64
        lines = (high.to(wide) - low.to(wide) + self.kernel).flatten(0, -2).amax(0)
        if graph_looks(points):
            demand(lines.prod() <= 2**62, apart)
        elif may_look(points) and bool(lines.prod() > 2**62):
            raise ValueError(apart)
        steps = [torch.ones_like(room[0])]
        for size in reversed(room[1:]):
            steps.insert(0, steps[0] * size)
        inside = (points - low + self.kernel // 2).masked_fill(mark, 0)
        keys = torch.stack(
            [inside[..., axis] * step for axis, step in enumerate(steps)], dim=-1
        ).sum(-1)
        # Those that stand nowhere are told apart, and are nobody's neighbor.
        apart = ABSENT - (1 << 62) - nowhere.to(torch.int64).cumsum(-1)
        return torch.where(nowhere, apart, keys), steps

    def extra_repr(self) -> str:
        """Width, kernel, and axes if they are not two."""
        axes = f", axes={self.axes}" if self.axes != 2 else ""
        return f"{self.dim}, kernel={self.kernel}{axes}"


def _check_distinct(ordered: Tensor) -> None:
    words = (
        "Two tokens stand at one point, as those of images that are packed in one row: who is "
        "beside whom cannot be told. Encode each image by itself."
    )
    distinct = ordered.diff(dim=-1) != 0
    if graph_looks(ordered):
        demand(distinct.all(), words)
    elif may_look(ordered) and not bool(distinct.all()):
        raise ValueError(words)
