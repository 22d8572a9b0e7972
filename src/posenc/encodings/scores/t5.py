"""T5's relative biases: a learned number for each head and bucket of distances."""

import warnings
from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_number, check_whole
from posenc.encodings.bias import RelativeBias
from posenc.guards import floating, may_look, working_dtype
from posenc.numerics.buckets import between_t5_borders, t5_borders
from posenc.positions import Integers, checked


class T5Bias(RelativeBias):
    """bias(h, q, k) = w[bucket(q − k), h]: exact buckets near by, logarithmic ones far off.

    T5 adds it to unscaled products: its attention has ``scale=1.0``. All layers share one. The
    weight has the layout of T5 checkpoints: load
    ``encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight`` as ``weight``.

    Args:
        heads: Number of query heads.
        buckets: Number of buckets, of both sides together.
        max_distance: Where the last bucket begins at the latest.
        bidirectional: Whether keys after their query have buckets of their own (encoders); if not,
            they share the bucket of distance 0 and are for the causal mask to hide (decoders).
        trained_length: If given, a warning says when a distance falls into a bucket that no
            sequence of this length ever reached.
        std: Standard deviation of the normal initialization.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: The numbers do not fit each other.

    Warns:
        UserWarning: A distance meets a bucket that was never trained (not inside a graph).

    Reference:
        Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1
        (arXiv:1910.10683).

    Example:
        >>> t5 = T5Bias(heads=2)
        >>> _ = t5.load_state_dict({"weight": torch.arange(64.0).view(32, 2)})
        >>> t5.profile(torch.tensor([0, 1, 100, -100]))
        tensor([[ 0.,  2., 30., 62.],
                [ 1.,  3., 31., 63.]], grad_fn=<IndexBackward0>)
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, buckets=buckets, max_distance=max_distance)
        bidirectional = bool(bidirectional)
        check_number(0.0, std=std)
        if trained_length is not None:
            check_whole(trained_length=trained_length)
        self.borders = t5_borders(buckets, max_distance, bidirectional)
        self.heads, self.buckets, self.max_distance = heads, buckets, max_distance
        self.bidirectional, self.trained_length, self.std = bidirectional, trained_length, std
        self.untrained = self._untrained()
        self.weight = nn.Parameter(torch.empty(buckets, heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every number anew from N(0, std²)."""
        nn.init.normal_(self.weight, std=self.std)

    def _untrained(self) -> tuple[int, ...]:
        """The buckets that no pair of tokens reaches in ``trained_length`` tokens."""
        if self.trained_length is None:
            return ()
        side = len(self.borders)
        far = [b for b in range(side) if self.borders[b] >= self.trained_length]
        # Bucket ``side`` is distance 0 of the keys that come after, which there is none of.
        return tuple(far + [side + b for b in far if self.bidirectional])

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Integers, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The number of each head for the bucket of each distance."""
        distance = checked(distance, "distance")
        self._warn(distance)
        index = between_t5_borders(distance, self.borders, self.bidirectional)
        # Gradients of many pairs are summed in one row; in 16 bits their sum would stand still.
        wide = self.weight.to(working_dtype(self.weight.dtype))
        return wide.mT[:, index].to(floating(dtype))

    def _warn(self, distance: Tensor) -> None:
        if not self.untrained or not may_look(distance) or not distance.numel():
            return
        first = self.borders[self.untrained[0]]
        met = distance.amax() >= first
        if self.bidirectional:
            met = met | (distance.amin() <= -first)
        if met:
            # The same words each time, so that the interpreter shows them once.
            warnings.warn(
                f"A distance of {first} or more meets a bucket that was never trained: with "
                f"trained_length {self.trained_length}, bucket(s) "
                f"{', '.join(map(str, self.untrained))} hold random numbers. Fine-tune on longer "
                f"sequences, or cut the distance.",
                stacklevel=3,
            )

    def extra_repr(self) -> str:
        """The arguments."""
        sides = "" if self.bidirectional else ", bidirectional=False"
        return (
            f"heads={self.heads}, buckets={self.buckets}, max_distance={self.max_distance}{sides}"
        )
