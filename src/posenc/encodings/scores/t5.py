"""T5's relative biases: a learned number for each head and bucket of distances."""

import warnings
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.bias import RelativeBias
from posenc.encodings.shapes import Device, Dtype, WholeDistance
from posenc.guards import floating, may_look, working_dtype
from posenc.numerics.buckets import between_t5_borders, t5_borders
from posenc.positions import checked


class T5Bias(RelativeBias):
    """bias(h, q, k) = w[bucket(q − k), h]: exact buckets near by, logarithmic ones far off.

    T5 adds it to unscaled products, with ``scale=1.0``, and all layers share one. Load
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
        self.untrained = self._untrained()
        self.weight = nn.Parameter(torch.empty(buckets, heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every number from N(0, std²)."""
        nn.init.normal_(self.weight, std=self.std)

    def _untrained(self) -> tuple[int, ...]:
        """The buckets that no pair of tokens reaches in ``trained_length`` tokens."""
        if self.trained_length is None:
            return ()
        check_whole(trained_length=self.trained_length)
        side = len(self.borders)
        far = [b for b in range(side) if self.borders[b] >= self.trained_length]
        # No key after its query is at distance 0, the first bucket of the other side.
        return tuple(far + [side + b for b in far if self.bidirectional])

    def profile(
        self, distance: WholeDistance, *, dtype: Dtype = None
    ) -> Float[Tensor, "heads *shape"]:
        distance = checked(distance, "distance")
        if self.untrained:
            self._warn(distance)
        index = between_t5_borders(distance, self.borders, self.bidirectional)
        # Gradients of many pairs are summed in one row; in 16 bits their sum would stand still.
        wide = self.weight.to(working_dtype(self.weight.dtype))
        return wide.mT[:, index].to(floating(dtype))

    def _warn(self, distance: Tensor) -> None:
        if not may_look(distance) or not distance.numel():
            return
        first = self.borders[self.untrained[0]]
        far = distance.abs() if self.bidirectional else distance
        if far.amax() >= first:
            # The same words each time, so that Python shows them once.
            warnings.warn(
                f"A distance of {first} or more has a bucket that no sequence of trained_length "
                f"{self.trained_length} reaches: {', '.join(map(str, self.untrained))}.",
                stacklevel=3,
            )
