"""The learned encoding: one trained vector a position."""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import checked_rows, working_dtype
from posenc.encodings.shapes import Device, Dtype, Embeddings, WholeRow
from posenc.encodings.tokens.addition import Added
from posenc.guards import floating
from posenc.positions import checked


class Learned(Added):
    """A trained vector for each position, added to the embeddings.

    PE(p) = weight[p + offset],  weight of shape [max_len + offset, dim]

    There is no position past the last row; ``resized`` interpolates to another length.

    Args:
        offset: Rows before that of position 0: 2 in OPT, RoBERTa's padding index + 1 = 2.
        std: Standard deviation of the normal initialization; 0.02 in BERT.

    Reference:
        Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1
        (arXiv:1705.03122); Devlin et al. 2019, "BERT" (arXiv:1810.04805).

    Example:
        >>> Learned(8, max_len=512).table(torch.tensor([0, 511])).shape
        torch.Size([2, 8])
    """

    def __init__(
        self,
        dim: int,
        max_len: int,
        *,
        offset: int = 0,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(dim=dim, max_len=max_len)
        check_whole(0, offset=offset)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.max_len, self.offset, self.std = max_len, offset, std
        self.weight = nn.Parameter(torch.empty(max_len + offset, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every row anew from N(0, std²)."""
        nn.init.normal_(self.weight, std=self.std)

    def table(self, positions: WholeRow, *, dtype: Dtype = None) -> Embeddings:
        dtype = self.weight.dtype if dtype is None else floating(dtype)
        weight = self.weight[self.offset :]
        positions = checked_rows(weight, checked(positions, device=weight.device))
        return F.embedding(positions, weight).to(dtype)

    @torch.no_grad()
    def resized(self, max_len: int) -> "Learned":
        """A new encoding of another length, interpolated linearly along the positions.

        As torch's ``interpolate`` with ``align_corners=False``, antialiased where it is shorter, in
        float32 at least. The ``offset`` rows stay.
        """
        before, rows = self.weight[: self.offset], self.weight[self.offset :]
        wide = resampled(rows.to(working_dtype(rows.dtype)), 0, max_len)
        made, rows = deepcopy(self), torch.cat((before, wide.to(rows.dtype)))
        made.max_len, made.weight = max_len, nn.Parameter(rows, self.weight.requires_grad)
        return made


def resampled(
    points: Float[Tensor, "..."],
    axis: int,
    length: int,
    *,
    mode: str = "bilinear",
    antialias: bool = True,
) -> Float[Tensor, "..."]:
    """``points`` interpolated along one axis; torch antialiases images alone, so it is one."""
    if points.shape[axis] == length:
        return points
    lines = points.movedim(axis, -1)
    image = lines.reshape(1, -1, 1, points.shape[axis])
    made = F.interpolate(
        image, size=(1, length), mode=mode, align_corners=False, antialias=antialias
    )
    return made.view(*lines.shape[:-1], length).movedim(-1, axis)
