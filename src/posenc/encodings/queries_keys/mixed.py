"""RoPE-Mixed: a learned direction and speed for each pair of each head."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_multiple, check_positive_number, check_whole
from posenc.encodings.queries_keys.learned import LearnedAngles
from posenc.encodings.queries_keys.rotation import rotate_each_head
from posenc.encodings.shapes import Device, Dtype, Heads
from posenc.frequencies import Powers
from posenc.positions import in_float64


class RoPEMixed(LearnedAngles):
    """Pair i of head h turns by x · f_x[h, i] + y · f_y[h, i], with learned frequencies.

    At first half of the pairs of a head look in a random direction and half across it, with
    magnitudes base^(−4i/d). Positions are ``[*batch, seq, 2]`` with (y, x), as of
    ``posenc.positions.grid(height, width)``. Angles are float64.

    Args:
        head_dim: d, a multiple of 4.
        heads: Number of heads; keys need as many, since each head has its own frequencies.
        base: 10 in the paper.

    Attributes:
        frequencies: ``[2, heads, pairs]``, those of x first, as in the authors' checkpoints.

    Reference:
        Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", equation 9
        (arXiv:2403.13298); pairs are interleaved as in ``models/vit_rope.py`` of naver-ai/rope-vit.

    Example:
        >>> from posenc.positions import grid
        >>> RoPEMixed(16, heads=3).table(grid(2, 5)).shape
        torch.Size([10, 2, 3, 8])
    """

    cos_axis = -3

    def __init__(
        self,
        head_dim: int,
        heads: int,
        base: float = 10.0,
        *,
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__(head_dim, 2, heads_first)
        check_whole(heads=heads)
        check_positive_number(base=base)
        check_multiple(4, head_dim=head_dim)
        self.heads, self.base = heads, base
        shape = (2, heads, head_dim // 2)
        self.frequencies = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        angles = torch.rand(self.heads, 1, device=self.frequencies.device) * 2 * pi
        directions = torch.cat((angles, angles + pi / 2), dim=-1)
        powers = Powers(self.base, tuple(range(0, self.head_dim, 4)), self.head_dim)
        magnitudes = powers.float32("float32").to(angles.device)
        for axis, along in enumerate((torch.cos, torch.sin)):  # x, y
            self.frequencies[axis] = (along(directions)[..., None] * magnitudes).flatten(1)

    @torch.no_grad()
    def load(self, frequencies: Float[Tensor, "2 *rest"]) -> None:
        """Load one layer of a checkpoint, ``[2, heads · pairs]`` or ``[2, heads, pairs]``, x first.

        Of rope-vit that is ``freqs[:, layer]``, and the same of timm's ``rope.freqs`` with
        ``grid_indexing="xy"``, as its published models have it; of ``"ij"`` pass ``freqs.flip(0)``.
        """
        self.frequencies.copy_(frequencies.reshape(self.frequencies.shape))

    def angles(self, points: Float[Tensor, "*shape 2"]) -> Float[Tensor, "*shape heads pairs"]:
        """x · f_x + y · f_y."""
        y, x = points[..., None, None, :].unbind(-1)
        along_x, along_y = in_float64(self.frequencies)
        return y * along_y + x * along_x

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 heads pairs"]) -> Heads:
        return rotate_each_head(q, table, pairing="interleaved", heads_first=self.heads_first)
