"""Several biases as one."""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.encodings.base import RelativeBias, ScoreBias
from posenc.encodings.scores.held import take_claims
from posenc.positions import Positions


def bias_sum(*biases: ScoreBias) -> ScoreBias:
    """What ``bias + bias`` is: a bias that holds all of them, registered, and adds their tables.

    Raises:
        ValueError: They were built for different numbers of heads.

    Example:
        >>> from posenc import ALiBi, T5Bias
        >>> both = ALiBi(2) + T5Bias(2)
        >>> isinstance(both, RelativeBias), len(list(both.parameters()))
        (True, 1)
    """
    parts = [part for bias in biases for part in _parts(bias)]
    if len({part.heads for part in parts}) != 1:
        raise ValueError(
            f"The biases are of {' and '.join(str(part.heads) for part in parts)} heads; only "
            f"those of as many heads add. Build them with one number of heads."
        )
    if all(isinstance(part, RelativeBias) for part in parts):
        return RelativeBiasSum(parts)  # type: ignore[arg-type]
    return BiasSum(parts)


def _parts(bias: ScoreBias) -> Iterable[ScoreBias]:
    return bias.parts if isinstance(bias, BiasSum | RelativeBiasSum) else [bias]  # type: ignore[return-value]


class BiasSum(ScoreBias):
    """Biases that are added; see ``bias_sum``."""

    def __init__(self, parts: Iterable[ScoreBias]):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.training = self.parts.training = any(part.training for part in self.parts)
        self.heads = self.parts[0].heads  # type: ignore[assignment]
        self.is_relative = all(part.is_relative for part in self.parts)
        self.takes_reals = all(part.takes_reals for part in self.parts)
        take_claims(self, *self.parts)  # type: ignore[arg-type]

    def table(
        self,
        q_positions: Int64[Tensor, "..."] | Positions,
        k_positions: Int64[Tensor, "..."] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """The sum of the tables."""
        first, *others = (
            part.table(q_positions, k_positions, dtype=dtype)  # type: ignore[operator]
            for part in self.parts
        )
        return sum(others, start=first)


class RelativeBiasSum(RelativeBias):
    """Relative biases that are added, and relative itself; see ``bias_sum``."""

    def __init__(self, parts: Iterable[RelativeBias]):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.training = self.parts.training = any(part.training for part in self.parts)
        self.heads = self.parts[0].heads  # type: ignore[assignment]
        self.takes_reals = all(part.takes_reals for part in self.parts)
        take_claims(self, *self.parts)  # type: ignore[arg-type]

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The sum of the profiles."""
        first, *others = (part.profile(distance, dtype=dtype) for part in self.parts)  # type: ignore[operator]
        return sum(others, start=first)
