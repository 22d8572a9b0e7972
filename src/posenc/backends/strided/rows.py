"""Attention of a few queries at a time, for scores that no vector holds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from posenc.backends.explicit import attend_explicitly
from posenc.backends.specification import AttentionSpecification
from posenc.backends.strided.gradients import ELEMENTS
from posenc.backends.strided.results import Merged, Partial
from posenc.encodings.base import ScoreEncoding, working_dtype


@dataclass(frozen=True, eq=False)
class InRows:
    """A few queries at a time, whose scores are formed, encoded, weighed and forgotten."""

    encodings: tuple[ScoreEncoding, ...]  # encodings of scores, in order, each of them pairwise
    specification: AttentionSpecification  # who stands where, and who sees whom

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The parameters that learn."""
        every = (p for encoding in self.encodings for p in encoding.parameters())
        return tuple(p for p in dict.fromkeys(every) if p.requires_grad)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for these keys."""
        parts = [self._attended(rows, q[:, :, rows], k, v, scale) for rows in self._rows(q, k)]
        out, lse = (torch.cat(some, dim=2) for some in zip(*parts, strict=True))
        return Partial(out, lse)

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and the parameters."""
        learning = self.tensors
        wide = working_dtype(q.dtype)
        totals = [torch.zeros_like(t, dtype=wide) for t in (q, k, v)]
        totals += [torch.zeros_like(t) for t in learning]
        for rows in self._rows(q, k):
            with torch.enable_grad():
                some = [t.detach().requires_grad_() for t in (q[:, :, rows], k, v)]
                made = self._attended(rows, some[0], some[1], some[2], scale)
            weight = (made.lse.detach() - merged.lse[:, :, rows]).exp().unsqueeze(-1)
            grad = merged.grad[:, :, rows].to(weight.dtype)
            to_lse = (grad * made.out.detach()).sum(-1) - merged.delta[:, :, rows]
            new = torch.autograd.grad(
                made, [*some, *learning], [weight * grad, weight.squeeze(-1) * to_lse],
                allow_unused=True,
            )  # fmt: skip
            for number, more in enumerate(new):
                if more is not None:
                    total = totals[number] if number else totals[0][:, :, rows]
                    total += more
        return tuple(totals)

    def _rows(self, q: Tensor, k: Tensor) -> list[slice]:
        some = max(1, ELEMENTS // max(1, len(q) * q.shape[1] * k.shape[2]))
        return [slice(i, min(i + some, q.shape[2])) for i in range(0, q.shape[2], some)]

    def _attended(self, rows: slice, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Partial:
        spec = self.specification.of_queries(rows)
        wide = working_dtype(q.dtype)
        tables = []
        for encoding in self.encodings:
            table = encoding.table(spec.queries, spec.keys, dtype=wide)  # type: ignore[arg-type]
            tables.append((encoding, table))
        made = attend_explicitly(
            q, k, v.to(wide), tables, spec.visible(), scale=scale, softcap=spec.softcap
        )
        dead = (made.encoded == -torch.inf).all(-1)
        lse = made.encoded.masked_fill(dead.unsqueeze(-1), 0.0).logsumexp(-1)
        return Partial(made.heads, lse.masked_fill(dead, -torch.inf))
