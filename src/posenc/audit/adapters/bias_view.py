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

    ``run`` takes a copy, q_len, k_len and the dtype of scores. With ``scores``
    ``[1, heads, q_len, k_len]`` it gives what becomes of them; of more rows, as it comes.
    """

    subject: Subject
    run: Run
    text: str  # how it is called, as Python
    takes: frozenset[str | None]  # the roles that it is told
    heads: int = 0
    rows: bool = False  # whether fewer queries than keys can be asked for
    key_only: bool = False  # whether all queries share one row, as slope × key position
    fixed: int | None = None  # the only length that it takes, if it is but one
    slopes_only: bool = False  # whether it gives slopes, and no bias
    given: Mapping[str, Any] = field(default_factory=dict)  # what the caller said of the call

    kind = "bias"

    def bias(
        self, q_len: int, k_len: int, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """The bias ``[heads, q_len, k_len]``, in its own dtype."""
        made = self.run(self.subject.fresh() if by is None else by, q_len, k_len, dtype)
        if made.shape[-2] not in (1, q_len) or made.shape[-1] != k_len:
            raise CallFailedError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}")
        return made.expand(-1, q_len, -1)

    def square(self, seq: int) -> Tensor:
        """The bias of as many queries as keys, float64; masked entries −∞."""
        seq = self.fixed or seq
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
