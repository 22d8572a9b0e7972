"""T5's relative biases: a learned number for each head and bucket of distances."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.bias import RelativeBias
from posenc.encodings.scores.content import trained_rows, warn_untrained
from posenc.encodings.shapes import Device, Dtype, Profile, WholeDistance
from posenc.encodings.told import Drawn
from posenc.guards import floating, working_dtype
from posenc.numerics.buckets import between_t5_borders, t5_borders
from posenc.positions import checked


class T5Bias(Drawn, RelativeBias):
    """bias(h, q, k) = w[bucket(q − k), h]: exact buckets near by, logarithmic ones far off.

    T5 adds it to unscaled products (``scale=1.0``). Load
    ``encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight`` as ``weight``.

    Args:
        buckets: Number of buckets, of both sides together.
        max_distance: Where the last bucket begins at the latest.
        bidirectional: Whether keys after their query have buckets of their own (encoders). If not,
            they share the bucket of distance 0 (decoders, whose mask hides them).
        trained_length: If given, a ``UserWarning`` tells of a distance in a bucket that no sequence
            of this length reaches.

    Reference:
        Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1
        (arXiv:1910.10683).

    Example:
        >>> t5 = T5Bias(heads=2)
        >>> _ = t5.load_state_dict({"weight": torch.arange(64.0).view(32, 2)})
        >>> t5.profile(torch.tensor([0, 1, 100, -100])).detach()[0]
        tensor([ 0.,  2., 30., 62.])
    """

    head_axes: ClassVar[Mapping[str, int] | None] = {"weight": 1}

    def __init__(
        self,
        heads: int,
        buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        *,
        trained_length: int | None = None,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, buckets=buckets, max_distance=max_distance)
        self.borders = t5_borders(buckets, max_distance, bidirectional)
        self.heads, self.buckets, self.max_distance = heads, buckets, max_distance
        self.bidirectional, self.trained_length, self.std = bidirectional, trained_length, std
        self.trained = trained_rows(self._buckets, trained_length)
        self.weight = nn.Parameter(torch.empty(buckets, heads, device=device, dtype=dtype))
        self.reset_parameters()

    def profile(self, distance: WholeDistance, *, dtype: Dtype = None) -> Profile:
        distance = checked(distance, "distance")
        index = self._buckets(distance)
        warn_untrained(index, self.trained, self.trained_length)
        # Gradients of many pairs are summed in one row; in 16 bits their sum would stand still.
        wide = self.weight.to(working_dtype(self.weight.dtype))
        return wide.mT[:, index].to(floating(dtype))

    def _buckets(self, distance: Tensor) -> Tensor:
        return between_t5_borders(distance, self.borders, self.bidirectional)
