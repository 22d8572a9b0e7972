"""The learned encoding of a grid: one trained vector a point, resampled to other grids."""

from collections.abc import Mapping, Sequence
from math import isqrt, prod
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_flag, check_number, check_whole, is_row
from posenc.encodings.base import TokenEncoding, working_dtype
from posenc.encodings.tokens.addition import add, checked_dropout
from posenc.guards import demand, floating, graph_looks, may_look
from posenc.positions import NOWHERE, Integers, checked, placeless
from posenc.positions.placeless import PADDING

Interpolation = Literal["bicubic", "linear"]

KEYS = ("pos_embed", "position_embeddings", "position_embedding.weight", "positional_embedding")
"""How the weight ends in the state dicts of timm, transformers (ViT; CLIP and SigLIP) and CLIP."""

USUAL_PREFIX = 2
"""A class token and a distillation token: more are told, not guessed."""


class LearnedGrid(TokenEncoding):
    """A trained vector for each point of a grid, added to the embeddings of its patches.

    PE(y, x) = weight[prefix + y · W + x],  weight of shape [prefix + H · W, dim]

    and likewise for any number of axes, the last one fastest. Positions are ``[*batch, seq, axes]``
    as ``posenc.positions.grid(H, W)`` makes them. Class tokens and registers that have rows of
    their own stand nowhere: ``posenc.positions.prefixed(grid(H, W), prefix)``. Padding behind
    images that ``posenc.positions.packed_grids`` packs gets zeros. Rows lie as in the checkpoints
    of ViT and its kin. Another resolution is ``resized``, or, where the trained weight shall learn
    from it, ``resampled``.

    Args:
        dim: Width of the embeddings.
        size: Number of points along each axis, (H, W) for images.
        prefix: Number of rows before those of the grid, for tokens that stand nowhere.
        std: Standard deviation of the (truncated) normal initialization; 0.02 in ViT.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A size is not positive, ``prefix`` or ``std`` is negative.

    Reference:
        Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1 and appendix D.4
        (arXiv:2010.11929).

    Example:
        >>> from posenc.positions import grid, prefixed
        >>> encoding = LearnedGrid(8, (14, 14), prefix=1)
        >>> encoding.table(prefixed(grid(14, 14))).shape
        torch.Size([197, 8])
        >>> encoding.table([[14, 0]])
        Traceback (most recent call last):
        ...
        ValueError: Point (14, 0) is outside of LearnedGrid(8, size=(14, 14), prefix=1). Give \
points of its grid, or make one of another size with resized(...).
    """

    keeps_norm = False
    keeps_shift = False

    def __init__(
        self,
        dim: int,
        size: Sequence[int],
        *,
        prefix: int = 0,
        std: float = 0.02,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(dim=dim)
        check_whole(0, prefix=prefix)
        check_number(0.0, std=std)
        self.dim, self.size = dim, _checked_size(size)
        self.prefix, self.std = int(prefix), std
        check_flag(batch_first=batch_first)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        rows = _number_of_rows(self.prefix, self.size)
        self.weight = nn.Parameter(torch.empty(rows, dim, device=device, dtype=dtype))
        self.reset_parameters()

    @classmethod
    def from_weight(
        cls,
        weight: Tensor,
        *,
        size: Sequence[int] | None = None,
        prefix: int | None = None,
    ) -> "LearnedGrid":
        """The encoding that a trained weight is, with a copy of it.

        A parameter that does not learn (as those of MAE) stays one; a plain tensor says nothing.

        Args:
            weight: ``[rows, dim]`` or ``[1, rows, dim]``, or ``[1, *size, dim]`` as of SAM.
            size: The sizes of its grid; by default those that the weight has, which no others may
                contradict, or of a square.
            prefix: Rows before the grid; by default what a square leaves, if that is 2 or less.

        Raises:
            ValueError: The weight has another number of rows, or it has to be told.

        Example:
            >>> LearnedGrid.from_weight(torch.zeros(1, 197, 8))
            LearnedGrid(8, size=(14, 14), prefix=1)
        """
        if weight.ndim > 3 and weight.shape[0] == 1:
            own = tuple(weight.shape[1:-1])
            if (own if size is None else _checked_size(size)) != own or prefix:
                raise ValueError(
                    f"size is {size} and prefix {prefix}; weight has shape {tuple(weight.shape)}, "
                    f"a grid of {own} alone. Leave both out, or pass weight.flatten(1, -2)."
                )
            size, prefix = own, 0
        if weight.ndim < 2 or (weight.ndim > 2 and weight.shape[0] != 1):
            raise ValueError(
                f"weight has shape {tuple(weight.shape)}; it must be [rows, dim], [1, rows, dim] "
                f"or [1, *size, dim]."
            )
        rows = weight.detach().reshape(-1, weight.shape[-1])
        size, prefix = _told(len(rows), size, prefix)
        made = cls(rows.shape[1], size, prefix=prefix, device=rows.device, dtype=rows.dtype)
        with torch.no_grad():
            made.weight.copy_(rows)
        made.weight.requires_grad_(not isinstance(weight, nn.Parameter) or weight.requires_grad)
        return made

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, Tensor],
        key: str | None = None,
        *,
        size: Sequence[int] | None = None,
        prefix: int | None = None,
    ) -> "LearnedGrid":
        """The encoding in the state dict of ViT, DeiT, MAE, DINOv2, BEiT, CLIP, SigLIP or SAM.

        Args:
            state: A state dict.
            key: The name of the weight; by default the one that ends as they do in timm,
                transformers or CLIP.
            size: As of ``from_weight``.
            prefix: As of ``from_weight``.

        Raises:
            KeyError: No such weight, or several.
            ValueError: As ``from_weight`` does.

        Example:
            >>> state = {"vit.embeddings.position_embeddings": torch.zeros(1, 50, 8)}
            >>> LearnedGrid.from_state_dict(state).size
            (7, 7)
        """
        if key is None:
            found = [name for name in state
                     if any(name == end or name.endswith(f".{end}") for end in KEYS)]  # fmt: skip
            if len(found) != 1:
                raise KeyError(
                    f"The state dict holds {', '.join(found) or 'nothing'} that ends in "
                    f"{' or '.join(KEYS)}. Name the weight with key=..."
                )
            key = found[0]
        return cls.from_weight(state[key], size=size, prefix=prefix)

    def reset_parameters(self) -> None:
        """Draw every row anew from N(0, std²), cut off at 2."""
        if self.std:
            nn.init.trunc_normal_(self.weight, std=self.std)
        else:
            nn.init.zeros_(self.weight)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """The rows of ``positions``, in the dtype of the weights unless another is asked for.

        Raises:
            TypeError: ``positions`` are not integers, or ``dtype`` is no floating one.
            ValueError: A point is outside of the grid, or there are more tokens that stand
                nowhere than ``prefix``.
        """
        dtype = self.weight.dtype if dtype is None else floating(dtype)
        points = checked(positions, device=self.weight.device)
        if points.ndim < 2 or points.shape[-1] != len(self.size):
            raise ValueError(
                f"positions have shape {tuple(points.shape)}; {self!r} takes "
                f"[*batch, seq, {len(self.size)}], as of posenc.positions.grid."
            )
        padding = points[..., 0] == PADDING
        rows = F.embedding(self._rows(points, padding), self.weight)
        if not may_look(padding) or bool(padding.any()):
            rows = rows.masked_fill(padding.unsqueeze(-1), 0)
        return rows.to(dtype)

    def _rows(self, points: Tensor, padding: Tensor) -> Tensor:
        """Which row of the weight each token takes; for padding any."""
        points = points.masked_fill(padding.unsqueeze(-1), 0)
        nowhere = placeless(points)
        number = points[..., 0] - NOWHERE
        inside = points.masked_fill(nowhere.unsqueeze(-1), 0)
        self._check_range(nowhere, number, inside)
        row = torch.zeros_like(number)
        for axis, size in enumerate(self.size):
            row = row * size + inside[..., axis]
        return torch.where(nowhere, number, row + self.prefix)

    def _check_range(self, nowhere: Tensor, number: Tensor, points: Tensor) -> None:
        sizes = torch.tensor(self.size, device=points.device)
        outside = ((points < 0) | (points >= sizes)).any(-1)
        without_row = nowhere & (number >= self.prefix)
        if graph_looks(points):
            inside = ~(outside | without_row).any()
            demand(inside, f"A point is outside of the grid {self.size} of LearnedGrid.")
        if not may_look(points) or not points.numel():
            return
        if outside.any():
            point = tuple(points[outside][0].tolist())
            raise ValueError(
                f"Point {point} is outside of {self!r}. Give points of its grid, or make one of "
                f"another size with resized(...)."
            )
        if without_row.any():
            count = int(number[nowhere].max()) + 1
            raise ValueError(
                f"{count} tokens stand nowhere, and {self!r} has {self.prefix} rows for such. "
                f"Build it with prefix={count}."
            )

    def encode(
        self,
        x: Float[Tensor, "*batch seq dim"],
        table: Float[Tensor, "*rows dim"],
        positions: Int64[Tensor, "*tokens"] | None = None,
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``; see ``posenc.encodings.tokens.addition``.

        With ``positions`` the table holds rows that are kept, and each token takes its own;
        ``out=x`` adds in place.
        """
        return add(
            x,
            table,
            positions,
            name="LearnedGrid",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
            out=out,
        )

    def resampled(
        self,
        size: Sequence[int],
        *,
        interpolation: Interpolation = "bicubic",
        antialias: bool = False,
    ) -> Float[Tensor, "rows dim"]:
        """The rows that a grid of another size has, prefix first; gradients reach the weight.

        Each axis is interpolated by itself, cells keeping their middles apart
        (``align_corners=False``), in float32 at least. Along two axes that is what ViT, DeiT, CLIP,
        SigLIP, BEiT and DINOv2 do in transformers by default; timm's ``resample_abs_pos_embed``
        antialiases; SigLIP 2 antialiases ``"linear"``; along three, ``"linear"`` is trilinear.

        Args:
            size: The number of points along each axis.
            interpolation: ``"bicubic"`` or ``"linear"``.
            antialias: Whether a smaller grid averages over what it leaves out.

        Raises:
            ValueError: The size has other axes, or ``interpolation`` is unknown.

        Example:
            >>> LearnedGrid(8, (14, 14), prefix=1).resampled((7, 21)).shape
            torch.Size([148, 8])
        """
        size = _checked_size(size)
        check_choice(get_args(Interpolation), interpolation=interpolation)
        check_flag(antialias=antialias)
        if len(size) != len(self.size):
            raise ValueError(f"size is {size}; {self!r} has {len(self.size)} axes.")
        points = self.weight[self.prefix :].to(working_dtype(self.weight.dtype))
        points = points.unflatten(0, self.size)
        for axis, length in enumerate(size):
            points = _along(points, axis, length, interpolation, antialias)
        rows = points.flatten(0, -2).to(self.weight.dtype)
        return torch.cat((self.weight[: self.prefix], rows))

    @torch.no_grad()
    def resized(
        self,
        size: Sequence[int],
        *,
        interpolation: Interpolation = "bicubic",
        antialias: bool = False,
    ) -> "LearnedGrid":
        """A new encoding of another size, interpolated as ``resampled`` says.

        Example:
            >>> LearnedGrid(8, (14, 14), prefix=1).resized((24, 24))
            LearnedGrid(8, size=(24, 24), prefix=1)
        """
        rows = self.resampled(size, interpolation=interpolation, antialias=antialias)
        other = LearnedGrid(
            self.dim,
            size,
            prefix=self.prefix,
            std=self.std,
            dropout=self.dropout,
            batch_first=self.batch_first,
            device=rows.device,
            dtype=rows.dtype,
        )
        other.weight.copy_(rows)
        other.weight.requires_grad_(self.weight.requires_grad)
        return other.train(self.training)

    def extra_repr(self) -> str:
        """Width, size, and the prefix if there is one."""
        prefix = f", prefix={self.prefix}" if self.prefix else ""
        return f"{self.dim}, size={self.size}{prefix}"


def _checked_size(size: Sequence[int]) -> tuple[int, ...]:
    if not is_row(size) or not size:
        raise ValueError(
            f"size is {size!r}; give the number of points along each axis, as (14, 14)."
        )
    for one in size:
        check_whole(size=one)
    return tuple(int(one) for one in size)


def _number_of_rows(prefix: int, size: tuple[int, ...]) -> int:
    rows = prefix + prod(size)
    check_whole(**{"the number of rows": rows})
    return rows


def _told(rows: int, size: Sequence[int] | None, prefix: int | None) -> tuple[tuple[int, ...], int]:
    """The size and the prefix of a weight of so many rows."""
    if prefix is not None:
        check_whole(0, prefix=prefix)
    if size is not None:
        size = _checked_size(size)
        prefix = rows - prod(size) if prefix is None else prefix
    else:
        side = isqrt(rows - (prefix or 0)) if rows > (prefix or 0) else 0
        left = rows - side**2
        size, square = (side, side), left <= USUAL_PREFIX if prefix is None else left == prefix
        if not square or not side:
            raise ValueError(
                f"weight has {rows} rows, which are no square and at most {USUAL_PREFIX} rows "
                f"before it. Say which with size=(height, width) and prefix=..."
            )
        prefix = left
    if prefix < 0 or prefix + prod(size) != rows:  # a size may be too large
        raise ValueError(
            f"weight has {rows} rows; size {size} and prefix {prefix} have {prefix + prod(size)}."
        )
    return size, prefix


def _along(points: Tensor, axis: int, length: int, interpolation: str, antialias: bool) -> Tensor:
    if points.shape[axis] == length:
        return points
    lines = points.movedim(axis, -1)
    images = lines.reshape(1, -1, 1, points.shape[axis])
    images = F.interpolate(
        images,
        size=(1, length),
        mode="bicubic" if interpolation == "bicubic" else "bilinear",
        align_corners=False,
        antialias=antialias,
    )
    return images.view(*lines.shape[:-1], length).movedim(-1, axis)
