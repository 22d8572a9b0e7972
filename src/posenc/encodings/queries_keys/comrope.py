"""ComRoPE: learned rotations of blocks of channels that commute: differences alone count."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice, check_flag, check_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.generators import block_rotations, points_of, rotate_blocks
from posenc.encodings.queries_keys.liere import checked_block
from posenc.positions import Positions, in_float64

Variant = Literal["LD", "AP"]


class ComRoPE(QueryKeyEncoding):
    """Blocks of heads are multiplied with exp(Σ_a p_a A_a), where the A_a commute.

    A = F − Fᵀ with a learned matrix F for each block. ``"LD"``, linearly dependent: A_a = m_a · A
    with a learned number m_a for each axis and block. ``"AP"``, axial partition: block n follows
    axis n mod axes alone. Either way the product of a query and a key depends on the difference of
    their points; norms are kept. Exponentials are float64, rounded once.

    Args:
        head_dim: d.
        axes: Number of coordinates of a point. The authors put the middles of patches between 0 and
            1: ``Coordinates(2 * grid(14, 14) + 1, scale=Fraction(1, 28))``.
        block: Channels that are rotated together.
        heads: Number of heads, each with matrices of its own; all alike if not given.
        variant: ``"LD"`` or ``"AP"``.
        std: Standard deviation of F at first.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Attributes:
        freqs: F, ``[heads, blocks, block, block]``.
        multiplier: m, ``[axes, blocks]``, at first normal; of ``"LD"`` alone.

    Raises:
        ValueError: ``block`` does not divide the width; with ``"AP"``, there are fewer blocks than
            axes, or they do not share them evenly; or no such variant.

    Reference:
        Yu et al. 2025, "ComRoPE", section 4 (arXiv:2506.03737); ``model.py`` of Longin-Yu/ComRoPE.

    Example:
        >>> from posenc.positions import grid
        >>> ComRoPE(16, axes=2, block=4, heads=3).table(grid(2, 5)).shape
        torch.Size([10, 3, 4, 4, 4])
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self,
        head_dim: int,
        axes: int = 2,
        block: int = 8,
        heads: int | None = None,
        variant: Variant = "LD",
        *,
        std: float = 1.0,
        heads_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(2, head_dim=head_dim)
        check_whole(axes=axes)
        check_number(0.0, std=std)
        check_choice(get_args(Variant), variant=variant)
        self.block = checked_block(head_dim, block)
        self.by_head = heads is not None
        if heads is not None:
            check_whole(heads=heads)
            self.heads = heads
        blocks = head_dim // self.block
        if variant == "AP" and blocks % axes:
            raise ValueError(
                f"{blocks} blocks of {self.block} channels cannot be shared evenly by {axes} axes. "
                f"Give a block of which axes · block divides head_dim={head_dim}."
            )
        self.head_dim, self.axes, self.std = head_dim, axes, std
        self.variant: Variant = variant
        check_flag(heads_first=heads_first)
        self.heads_first = heads_first
        factory = {"device": device, "dtype": dtype}
        shape = (heads or 1, blocks, self.block, self.block)
        self.freqs = nn.Parameter(torch.empty(shape, **factory))
        if variant == "LD":
            self.multiplier = nn.Parameter(torch.empty(axes, blocks, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all matrices anew."""
        nn.init.normal_(self.freqs, std=self.std)
        if self.variant == "LD":
            nn.init.normal_(self.multiplier)

    def table(
        self, positions: Tensor | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "*rows heads n b b"]:
        """The rotation of each token, float32 unless another dtype is asked for.

        Args:
            positions: ``[*batch, seq, axes]``, whole numbers or coordinates.
            dtype: That of the matrices.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have one coordinate an axis.
        """
        points = points_of(positions, self.axes)
        matrices = in_float64(self.freqs)  # narrower numbers would round the difference
        matrices = matrices - matrices.mT
        shares = in_float64(self._shares())[:, None, :, None, None]  # [axes, 1, blocks, 1, 1]
        return block_rotations(points, shares * matrices, dtype).to(self.freqs.device)

    def _shares(self) -> Float[Tensor, "axes blocks"]:
        """How much of each block follows each axis."""
        if self.variant == "LD":
            return self.multiplier
        blocks = self.freqs.shape[1]
        return torch.eye(self.axes, device=self.freqs.device).repeat(1, blocks // self.axes)

    def encode_queries(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows heads n b b"],
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated.

        Raises:
            ValueError: Width, length or number of heads is not that of the table.
        """
        return rotate_blocks(
            q,
            table,
            name="ComRoPE",
            built=self.heads if self.by_head else 1,
            block=self.block,
            head_dim=self.head_dim,
            heads_first=self.heads_first,
        )

    def encode_keys(
        self,
        k: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows heads n b b"],
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self.encode_queries(k, table)

    def extra_repr(self) -> str:
        """Sizes and variant."""
        told = f"{self.head_dim}, axes={self.axes}, block={self.block}"
        told = f"{told}, heads={self.heads}" if self.by_head else told
        return f"{told}, variant={self.variant!r}"
