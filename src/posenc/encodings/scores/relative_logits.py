"""Relative logits of Inkling: each token mixes a bank of profiles over distance."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_positive_number, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.content import Content, OfDistance, picked
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.numerics.product import products

EPSILON = 1e-6


class RelativeLogits(OfDistance):
    """score(q, k) += r_q · W[:, q − k]  for 0 ≤ q − k < extent, and nothing elsewhere

    with r_q = (P x_q) of each head, ``width`` numbers that a query reads in its hidden state x, and
    W a bank of ``width`` profiles over distance that all heads share. Nothing is scaled.

    Inkling 2 scales r by learned numbers and clips its length first (``clip``). Both multiply the
    full-attention layers by a temperature: ``Positional(scores=(RelativeLogits(...),
    LogTemperature(...)))``. Load ``r_proj.weight``, ``rel_logits_proj.proj`` and
    ``rel_l2_clip.scale`` of a checkpoint as ``weight``, ``profiles`` and ``scale``.

    Args:
        width: Numbers that each head reads in it, ``d_rel`` there.
        extent: The distance from which on nothing is added, ``rel_extent`` there.
        clip: The largest length of r, 8.0 in Inkling 2; ``None``: r stays as it is.

    Reference:
        ``InklingRelativeLogits`` in transformers, of Inkling and Inkling 2.

    Example:
        >>> logits, x = RelativeLogits(heads=2, dim=8, width=4, extent=3), torch.randn(1, 5, 8)
        >>> made = logits(torch.zeros(1, 2, 5, 5), q_hidden=x, k_hidden=x)
        >>> (made[0, 0, 4] != 0).tolist()
        [False, False, True, True, True]
    """

    is_pairwise = reads_hidden = True

    def __init__(
        self,
        heads: int,
        dim: int,
        width: int = 16,
        extent: int = 1024,
        *,
        clip: float | None = None,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, dim=dim, width=width, extent=extent)
        if clip is not None:
            check_positive_number(clip=clip)
        self.heads, self.dim, self.width, self.extent = heads, dim, width, extent
        self.clip, self.std = clip, std
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(heads * width, dim, **factory))
        self.profiles = nn.Parameter(torch.empty(width, extent, **factory))
        self.scale = None if clip is None else nn.Parameter(torch.empty(heads, width, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both maps from N(0, std²), and make the scale of r one."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.normal_(self.profiles, std=self.std)
        if self.scale is not None:
            nn.init.ones_(self.scale)

    def query_features(
        self, hidden: Float[Tensor, "*batch q_len dim"]
    ) -> Float[Tensor, "*batch q_len _"]:
        """r of every head, side by side: ``[*batch, q_len, heads · width]``."""
        r = products(hidden.to(working_dtype(hidden.dtype)), self.weight)
        if self.scale is None or self.clip is None:
            return r
        r = r.unflatten(-1, (self.heads, self.width)) * self.scale.to(r.dtype)
        length = torch.linalg.vector_norm(r, dim=-1, keepdim=True)
        return (r * (self.clip / (length + EPSILON)).clamp(max=1.0)).flatten(-2)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        r = content.q_features.unflatten(-1, (self.heads, self.width)).transpose(-2, -3)
        logits = products(r, self.profiles.mT)
        nothing = logits.new_zeros(*logits.shape[:-1], 1)
        index = table.where((table >= 0) & (table < self.extent), self.extent)
        return scores + picked(torch.cat([logits, nothing], dim=-1), index)
