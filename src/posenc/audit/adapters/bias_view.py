"""Something that gives a bias for scores, as the checker sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import CallFailedError
from posenc.audit.subjects import Subject

SEQ = 12

Run = Callable[..., Tensor]


@dataclass
class BiasView:
    """Something that gives a bias ``[heads, q_len, k_len]``.

    Attributes:
        subject: The source of copies.
        run: From a copy, q_len, k_len and the dtype of scores to the bias; with ``scores``
            ``[1, heads, q_len, k_len]``, where it takes some, to what it makes of them, and of
            more rows to that as it comes.
        text: How it is called, as Python.
        takes: The roles that it is told.
        heads: Number of heads.
        rows: Whether fewer queries than keys can be asked for.
        key_only: Whether all queries share one row, as slope × key position.
        fixed: The only length that it takes, if it is but one.
        slopes_only: Whether it gives slopes, and no bias.
        given: What the caller said of the call, to be said again.
    """

    subject: Subject
    run: Run
    text: str
    takes: frozenset[str | None]
    heads: int = 0
    rows: bool = False
    key_only: bool = False
    fixed: int | None = None
    slopes_only: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)

    kind = "bias"

    @property
    def takes_scores(self) -> bool:
        """Whether it takes scores, to which it may add."""
        return "scores" in self.takes

    @property
    def takes_positions(self) -> bool:
        """Whether it takes positions of queries and of keys, which ``run`` has as ``at``."""
        return "q_positions" in self.takes

    @property
    def takes_mask(self) -> bool:
        """Whether it takes a mask of padding, by which ``run`` gives the bias as it comes."""
        return "mask" in self.takes

    @property
    def says_no_size(self) -> bool:
        """Whether a call tells it nothing of queries and keys."""
        return not self.takes

    def bias(
        self, q_len: int, k_len: int, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """The bias ``[heads, q_len, k_len]``, in its own dtype."""
        made = self.run(self.subject.fresh() if by is None else by, q_len, k_len, dtype)
        if made.shape[-2] not in (1, q_len) or made.shape[-1] != k_len:
            raise CallFailedError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}")
        return made.expand(-1, q_len, -1)

    def square(self, seq: int | None = None) -> Tensor:
        """The bias of as many queries as keys, float64; masked entries −∞."""
        seq = self.fixed or seq or SEQ
        made = self.bias(seq, seq).double()
        return made.masked_fill(made < -1e8, -torch.inf)

    def seen(self, q_len: int, k_len: int, by: Any = None) -> Tensor:
        """The bias less that of each query's own key: what a softmax can see of it.

        Where that is hidden, less what own keys receive elsewhere; if that is not one number, less
        that of the nearest key before it that is seen, or after it.
        """
        made = self.bias(q_len, k_len, by=by).double()
        made = made.masked_fill(made < -1e8, -torch.inf)
        index = torch.arange(k_len - q_len, k_len)[:, None].expand(len(made), -1, -1)
        own = made.gather(2, index)
        away = own.isneginf()
        if not bool(away.any()):
            return made - own
        most, least = own.amax(1, keepdim=True), own.masked_fill(away, torch.inf).amin(1, True)
        one = most - least <= 1e-5 * most.abs()
        near = made.gather(2, _nearest(made.isneginf(), index))
        other = torch.where(one | ~most.isfinite(), most, near)
        other = other.masked_fill(other.isneginf(), 0.0)
        return made - torch.where(away.any(1, keepdim=True), other.where(one | away, own), own)

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        what = "gives slopes" if self.slopes_only else "gives a bias"
        return f"{what} for {self.heads} heads; called as {self.text}"


def _nearest(away: Tensor, own: Tensor) -> Tensor:
    """The last key up to each query's own that is not away, or the first after it."""
    keys = torch.arange(away.shape[-1])
    before = torch.where(away | (keys > own), -1, keys).amax(-1, keepdim=True)
    after = torch.where(away | (keys < own), len(keys) - 1, keys).amin(-1, keepdim=True)
    return torch.where(before < 0, after, before)
