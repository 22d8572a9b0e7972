"""A bias of distance alone, kept as one number a distance and seen as a matrix."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.backends.masks import hides
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.bias import BiasSum, ScoreBias
from posenc.encodings.scores import ALiBi, Sandwich, T5Bias
from posenc.guards import may_look


@dataclass(frozen=True)
class Toeplitz:
    """The bias at every distance that occurs, from the largest down.

    The matrix of queries × keys has equal numbers along its diagonals. With the queries in reverse
    order these become anti-diagonals, where row + column is constant: a view of the vector with a
    stride of 1 on both axes.

    Example:
        >>> bias = Toeplitz(torch.tensor([[2.0, 1.0, 0.0, -1.0]]), highest=2)
        >>> bias.reversed_rows(2, 3, first=2)  # distances of the last query first: 2, 1, 0
        tensor([[[[ 2.,  1.,  0.],
                  [ 1.,  0., -1.]]]])
    """

    values: Float[Tensor, "heads count"]  # column m is distance highest − m
    highest: int  # the largest distance
    shared_from: int | None = None  # from which distance on, to each side, all learn one number

    def reversed_rows(
        self, q_len: int, k_len: int, *, first: int
    ) -> Float[Tensor, "1 heads {q_len} {k_len}"]:
        """A view, from the distance ``first`` of the last query to the first key on."""
        start = self.highest - first
        part = self.values[:, start : start + q_len + k_len - 1]
        return part.as_strided((1, len(part), q_len, k_len), (0, part.stride(0), 1, 1))

    def falls_far(self, terms: int) -> bool:
        """Whether some bias lies so far below that at distance 0 that ``cut_off`` may cut."""
        if not may_look(self.values):
            return False
        seen = self.values.where(self.values.isfinite(), torch.inf)
        least = self.values[:, self.highest, None] - margin(terms, self.values.dtype)
        return bool((seen < least).any())

    def cut_off(
        self, bound: Float[Tensor, "heads"], disparity: Float[Tensor, "heads"], terms: int
    ) -> "Toeplitz":
        """−∞ where a key cannot reach the last bit of a result beside the key at distance 0.

        Scores lie in ±c, so a key at distance n has at most exp(bias(n) + c), and the key at
        distance 0 at least exp(bias(0) − c); every query must see the latter. A value is at most
        exp(d) times as long as another. All ``terms`` keys together stay below a quarter of the
        rounding of one. This also avoids denormal numbers, which are ten times slower.
        """
        apart = (2 * bound + disparity)[:, None] + margin(terms, self.values.dtype)
        least = self.values[:, self.highest, None] - apart
        return replace(self, values=self.values.masked_fill(self.values < least, -torch.inf))


def margin(terms: int, dtype: torch.dtype) -> float:
    """How far below one score ``terms`` others together no longer count beside it."""
    return log(terms) - log(torch.finfo(dtype).eps / 4)


def toeplitz(
    biases: Iterable[ScoreBias],
    q_len: int,
    k_len: int,
    offset: int,
    *,
    is_causal: bool = False,
    window: int | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | None = None,
) -> Toeplitz:
    """The sum of relative biases for a run of queries and a run of keys."""
    highest, biases = offset + q_len - 1, tuple(biases)
    distance = torch.arange(highest, highest - q_len - k_len + 1, -1, device=device)
    values = at_distances(biases, distance, is_causal=is_causal, window=window, dtype=dtype)
    return Toeplitz(values, highest, _shared_from(biases) or None)


def at_distances(
    biases: Iterable[ScoreEncoding],
    distance: Int64[Tensor, "count"],
    *,
    is_causal: bool,
    window: int | None,
    dtype: torch.dtype,
) -> Float[Tensor, "heads count"]:
    """The sum of relative biases, or a row of zeros if there are none; −∞ where a key is hidden."""
    values = None
    for bias in biases:
        profile = bias.profile(distance, dtype=dtype)  # type: ignore[operator]
        values = profile if values is None else values + profile
    if values is None:
        values = torch.zeros(1, distance.shape[0], dtype=dtype, device=distance.device)
    hidden = hides(distance, is_causal=is_causal, window=window)
    if hidden is not None:
        values = values.masked_fill(hidden, -torch.inf)
    return values.contiguous()


def _shared_from(biases: Iterable[ScoreBias]) -> int | None:
    """From where on the sum learns one number, at least; ``None`` where that is not known."""
    known = [_one_number_from(bias) for bias in biases]
    if any(start is None for start in known):
        return None
    return max(known, default=0)  # type: ignore[type-var]


def _one_number_from(bias: ScoreBias) -> int | None:
    """The same of one bias, 0 where it learns nothing; ``None`` for a bias that is not ours."""
    if bias.heads_of is not None:
        return _one_number_from(bias.heads_of)
    if type(bias) is BiasSum:
        return _shared_from(bias.parts)  # type: ignore[arg-type]
    if type(bias) is T5Bias:
        return bias.borders[-1]
    return 0 if type(bias) in (ALiBi, Sandwich) else None
