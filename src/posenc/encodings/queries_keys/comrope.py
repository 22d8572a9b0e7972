"""ComRoPE: learned rotations of blocks of channels that commute: differences alone count."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice, check_number
from posenc.encodings.queries_keys.learned import LearnedBlocks
from posenc.positions import in_float64

Variant = Literal["LD", "AP"]


class ComRoPE(LearnedBlocks):
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
        variant: ``"LD"`` or ``"AP"``; for this the number of blocks is a multiple of the axes.
        std: Standard deviation of F at first.

    Attributes:
        freqs: F, ``[heads, blocks, block, block]``.
        multiplier: m, ``[axes, blocks]``, at first normal; of ``"LD"`` alone.

    Reference:
        Yu et al. 2025, "ComRoPE", section 4 (arXiv:2506.03737); ``model.py`` of Longin-Yu/ComRoPE.

    Example:
        >>> from posenc.positions import grid
        >>> ComRoPE(16, axes=2, block=4, heads=3).table(grid(2, 5)).shape
        torch.Size([10, 3, 4, 4, 4])
    """

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
        super().__init__(head_dim, axes, block, heads, heads_first)
        check_number(0.0, std=std)
        check_choice(get_args(Variant), variant=variant)
        blocks = head_dim // block
        if variant == "AP" and blocks % axes:
            raise ValueError(f"{blocks} blocks cannot be shared evenly by {axes} axes.")
        self.variant: Variant = variant
        self.std = std
        factory = {"device": device, "dtype": dtype}
        self.freqs = nn.Parameter(torch.empty(heads or 1, blocks, block, block, **factory))
        if variant == "LD":
            self.multiplier = nn.Parameter(torch.empty(axes, blocks, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all matrices anew."""
        nn.init.normal_(self.freqs, std=self.std)
        if self.variant == "LD":
            nn.init.normal_(self.multiplier)

    def generators_of_axes(self) -> Float[Tensor, "axes heads n b b"]:
        """How much of each block follows each axis, times F − Fᵀ."""
        matrices = in_float64(self.freqs)  # narrower numbers would round the difference
        if self.variant == "LD":
            shares = in_float64(self.multiplier)
        else:
            repeats = matrices.shape[1] // self.axes
            shares = torch.eye(self.axes, dtype=matrices.dtype, device=matrices.device)
            shares = shares.repeat(1, repeats)
        return shares[:, None, :, None, None] * (matrices - matrices.mT)
