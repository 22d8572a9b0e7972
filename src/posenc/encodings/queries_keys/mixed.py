"""RoPE-Mixed: a learned direction and speed for each pair of each head."""

from math import pi

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_flag, check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import unturned
from posenc.encodings.queries_keys.rotation import rotate_each_head
from posenc.frequencies import Powers
from posenc.guards import floating
from posenc.positions import Positions, checked, in_float64
from posenc.positions.placeless import among_places


class RoPEMixed(QueryKeyEncoding):
    """Pair i of head h turns by x · f_x[h, i] + y · f_y[h, i], with learned frequencies.

    At first half of the pairs of a head look in a random direction and half across it, with
    magnitudes base^(−4i/d). Positions are ``[*batch, seq, 2]`` with (y, x), as
    ``posenc.positions.grid(height, width)`` makes them. A learned frequency has no exact value to
    keep: angles are float64, which errs by less than 2^-51 of |x · f_x| + |y · f_y|. Where the two
    cancel, that is more of the angle itself.

    ``frequencies`` are ``[2, heads, pairs]``, those of x first, as the authors' checkpoints and
    those of timm have them; ``load`` takes them over.

    Args:
        head_dim: d, a multiple of 4.
        heads: Number of heads; keys need as many, since each head has its own frequencies.
        base: 10 in the paper.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A width that is no multiple of 4, or no head.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 9
        (arXiv:2403.13298); pairs are interleaved as in the authors' code, ``models/vit_rope.py`` of
        naver-ai/rope-vit.

    Example:
        >>> from posenc.positions import grid
        >>> encoding = RoPEMixed(16, heads=3)
        >>> encoding.table(grid(2, 5)).shape
        torch.Size([10, 2, 3, 8])
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self,
        head_dim: int,
        heads: int,
        base: float = 10.0,
        *,
        heads_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads)
        check_whole(4, head_dim=head_dim)
        check_positive_number(base=base)
        if head_dim % 4:
            raise ValueError(
                f"head_dim is {head_dim}; two directions share its pairs, so it must be a multiple "
                f"of 4."
            )
        self.head_dim, self.heads, self.base = head_dim, heads, base
        check_flag(heads_first=heads_first)
        self.heads_first = heads_first
        shape = (2, heads, head_dim // 2)
        self.frequencies = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw a direction for each head anew."""
        angles = torch.rand(self.heads, 1, device=self.frequencies.device) * 2 * pi
        directions = torch.cat((angles, angles + pi / 2), dim=-1)
        powers = Powers(self.base, tuple(range(0, self.head_dim, 4)), self.head_dim)
        magnitudes = powers.float32("float32").to(angles.device)
        for axis, along in enumerate((torch.cos, torch.sin)):  # x, y
            self.frequencies[axis] = (along(directions)[..., None] * magnitudes).flatten(1)

    @torch.no_grad()
    def load(self, frequencies: Float[Tensor, "2 *rest"]) -> None:
        """Take over the frequencies of one layer of a checkpoint.

        Args:
            frequencies: ``[2, heads · pairs]`` or ``[2, heads, pairs]``, those of x first: of the
                ``freqs`` of rope-vit, ``[2, depth, heads · pairs]``, those at ``[:, layer]``; the
                same of ``rope.freqs`` of timm where it counts ``grid_indexing="xy"``, as the models
                it publishes do; of its ``"ij"`` the first axis is y: pass ``freqs.flip(0)``.

        Raises:
            ValueError: They are of another number of heads or pairs.
        """
        wanted = self.frequencies.shape
        if frequencies.shape not in (wanted, (2, wanted[1] * wanted[2])):
            raise ValueError(
                f"frequencies have shape {tuple(frequencies.shape)}; {self!r} takes "
                f"{tuple(wanted)}, or the last two axes as one. For one layer of rope-vit pass "
                f"freqs[:, layer]."
            )
        self.frequencies.copy_(frequencies.view(wanted))

    def table(
        self,
        positions: Int64[Tensor, "*batch seq 2"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 heads pairs"]:
        """cos and sin for every head, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have two coordinates.
        """
        positions = checked(positions, reals=True)
        if positions.ndim < 2 or positions.shape[-1] != 2:
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}; they must be [*batch, seq, 2] "
                f"with (y, x), as of posenc.positions.grid."
            )
        positions, nowhere = among_places(positions)
        y, x = in_float64(positions)[..., None, None, :].unbind(-1)
        along_x, along_y = in_float64(self.frequencies)
        angles = y * along_y + x * along_x
        table = torch.stack((angles.cos(), angles.sin()), dim=-3).to(floating(dtype))
        return unturned(table.to(positions.device), nowhere, heads=True)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 heads pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated, each head by its own frequencies.

        Raises:
            ValueError: Width, length or number of heads is not that of the table.
        """
        return rotate_each_head(
            q,
            table,
            name="RoPEMixed",
            built=self.heads,
            head_dim=self.head_dim,
            pairing="interleaved",
            heads_first=self.heads_first,
        )

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 heads pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self.encode_queries(k, table)

    def extra_repr(self) -> str:
        """Width, heads and base."""
        return f"{self.head_dim}, heads={self.heads}, base={self.base}"
