"""The bias of some heads, for a rank that computes no others."""

from copy import deepcopy

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import RelativeBias, ScoreBias
from posenc.encodings.scores.held import take_claims
from posenc.positions import Positions


def bias_of_heads(bias: ScoreBias, heads: int | slice) -> ScoreBias:
    """What ``bias[heads]`` is: those heads, bit for bit, as a bias of its own.

    For head-parallel (tensor-parallel, Ulysses) execution: a rank builds the bias of the whole
    model and holds the part that belongs to its heads. Parameters are shared with ``bias``.

    Raises:
        IndexError: There is no such head.
        TypeError: ``heads`` is no number and no slice.

    Example:
        >>> from posenc import ALiBi
        >>> ALiBi(8)[2:4]
        RelativeBiasHeads(
          2, 3
          (of): ALiBi(heads=8)
        )
    """
    if isinstance(bias, BiasHeads | RelativeBiasHeads):
        return bias_of_heads(bias.of, _slice(bias.chosen[_within(bias, heads)]))
    chosen = range(bias.heads)[_within(bias, heads)]
    if isinstance(bias, RelativeBias):
        return RelativeBiasHeads(bias, chosen)
    return BiasHeads(bias, chosen)


def bias_apart(bias: ScoreBias, heads: slice) -> ScoreBias | None:
    """The bias of some heads alone, with parameters of its own; nothing is shared with ``bias``.

    Returns:
        It, or ``None`` where the numbers of one head depend on more than parameters of its own, and
        where a class does not itself say its ``head_axes``: what it changes of the one that it
        derives from may count heads otherwise.

    Example:
        >>> from posenc import ALiBi, FIRE
        >>> bias_apart(ALiBi(4), slice(1, 3)), bias_apart(FIRE(4), slice(1, 3))
        (ALiBi(heads=2, slopes=(0.0625, 0.015625)), None)
    """
    axes = vars(type(bias)).get("head_axes")  # not those of the class that it derives from
    own = {name for name, _ in bias.named_parameters()}
    if axes is None or own - set(axes):
        return None
    part = deepcopy(bias)
    vars(part)["fixed"] = frozenset()  # what is being built may still be set
    part.take_heads(_within(bias, heads))
    del vars(part)["fixed"]
    return part


def _within(bias: ScoreBias, heads: int | slice) -> slice:
    """``heads`` as a slice that takes some of the heads, in their order."""
    every = range(bias.heads)
    if isinstance(heads, bool) or not isinstance(heads, int | slice):
        raise TypeError(
            f"A bias was indexed with {heads!r}; give the number of a head, or a slice of heads, "
            f"as bias[2:4]."
        )
    if isinstance(heads, int):
        if not -bias.heads <= heads < bias.heads:
            raise IndexError(f"Head {heads} was asked of {bias.heads}; they count from 0.")
        heads = slice(every[heads], every[heads] + 1)
    chosen = every[heads]
    if not chosen or chosen.step < 0:
        raise IndexError(
            f"Heads {heads.start}:{heads.stop}:{heads.step} were asked of {bias.heads}; give a "
            f"slice that takes one head or more, in their order."
        )
    return heads


def _slice(chosen: range) -> slice:
    return slice(chosen.start, chosen.stop, chosen.step)


class BiasHeads(ScoreBias):
    """Some heads of a bias; see ``bias_of_heads``."""

    def __init__(self, of: ScoreBias, chosen: range):
        super().__init__()
        self.of, self.chosen, self.training = of, chosen, of.training
        self.heads, self.is_relative = len(chosen), of.is_relative
        self.takes_reals = of.takes_reals
        take_claims(self, of)

    def table(
        self,
        q_positions: Int64[Tensor, "..."] | Positions,
        k_positions: Int64[Tensor, "..."] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """The table of these heads."""
        table = self.of.table(q_positions, k_positions, dtype=dtype)  # type: ignore[arg-type]
        return table[..., _slice(self.chosen), :, :]

    def extra_repr(self) -> str:
        """Which heads."""
        return ", ".join(map(str, self.chosen))


class RelativeBiasHeads(RelativeBias):
    """Some heads of a relative bias, and relative itself; see ``bias_of_heads``."""

    def __init__(self, of: RelativeBias, chosen: range):
        super().__init__()
        self.of, self.chosen, self.training = of, chosen, of.training
        self.heads, self.takes_reals = len(chosen), of.takes_reals
        take_claims(self, of)

    def profile(
        self, distance: Int64[Tensor, "*shape"] | Positions, *, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "heads *shape"]:
        """The profile of these heads."""
        profile = self.of.profile(distance, dtype=dtype)  # type: ignore[arg-type]
        return profile[_slice(self.chosen)]

    @property
    def heads_of(self) -> RelativeBias:  # type: ignore[override]
        """The whole bias."""
        return self.of

    def extra_repr(self) -> str:
        """Which heads."""
        return ", ".join(map(str, self.chosen))
