"""A subject that gives a bias for scores, with what several questions need of it."""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from posenc.audit.adapters.bias import SEQ, BiasView
from posenc.audit.identity import biases
from posenc.audit.report import CallFailedError, NotAskedError

FAR, FAR_SQUARE = 4096, 1024
"""How many keys are looked at, of one query and where all queries have to be asked for."""

FAR_ROWS = 600
"""Up to which distance rows of a table are looked up."""


@dataclass
class BiasInquiry:
    """A subject that gives a bias, with what several questions need of it."""

    view: BiasView
    length: int
    errors: dict[int, float] = field(default_factory=dict)

    @cached_property
    def seen(self) -> Tensor:
        """What a softmax sees of the bias of a square, float64."""
        seq = self.view.fixed or 2 * SEQ
        return self.view.seen(seq, seq)

    @cached_property
    def given(self) -> Tensor:
        """The bias of the same square, as it comes."""
        seq = self.seen.shape[-1]
        return self.view.bias(seq, seq)

    @cached_property
    def far_square(self) -> Tensor:
        """The same of as many queries as rows of a table are looked up for, if it gives them."""
        seq = min(FAR_ROWS, self.length)
        try:
            return self.seen if self.view.fixed else self.view.seen(seq, seq)
        except NotAskedError:
            return self.seen

    @cached_property
    def room(self) -> float:
        """What numbers of one diagonal may be apart, as a share of the largest."""
        seq, line = self.far_square.shape[-1], None
        if self.linear is not None:
            line = self.linear.fall[:, None] * torch.arange(seq)
        return biases.room(self.view.bias(seq, seq), line)

    @cached_property
    def along(self) -> tuple[Tensor, Tensor]:
        """For each head, how far numbers of one diagonal are apart, and how large they are."""
        seen = self.far_square
        seq = seen.shape[-1]
        each = torch.zeros(len(seen), dtype=torch.float64)
        for back in range(1, seq):
            along = seen.diagonal(-back, 1, 2)
            if torch.isfinite(along).all():
                each = each.maximum((along - along[:, :1]).abs().amax(1))
        below = seen[:, torch.ones(seq, seq, dtype=torch.bool).tril()].nan_to_num(0, 0, 0)
        return each, below.abs().amax(1)

    @cached_property
    def strays(self) -> int | None:
        """The head whose diagonals differ most, if they do by more than rounding."""
        each, sizes = self.along
        shares = each / sizes.masked_fill(sizes == 0, 1.0)  # a head may be 128 times another
        head = int(shares.argmax())
        return head if shares[head] > self.room else None

    @cached_property
    def learns(self) -> bool:
        """Whether it has parameters."""
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(p.requires_grad for p in thing.parameters())

    @cached_property
    def linear(self) -> biases.Linear | None:
        """Its slopes, if it falls linearly."""
        return biases.linear(self.seen, self.given)

    @cached_property
    def buckets(self) -> biases.Buckets | None:
        """The buckets by which it reads a table, if it does."""
        thing = self.view.subject.fresh()
        if not isinstance(thing, nn.Module):
            return None
        seq = min(FAR_ROWS, self.view.fixed or FAR_ROWS)
        try:
            square = self.view.bias(seq, seq, by=thing).double()
        except CallFailedError:
            return None
        found = biases.looked_up(square, thing)
        return biases.buckets(*found) if found is not None else None

    def longest_row(self, dtype: torch.dtype) -> Tensor:
        """The bias of the last of as many keys as it gives, ``[heads, keys]``.

        Raises:
            NotAskedError: It gives none of 64 keys or more.
        """
        view, length = self.view, min(self.length, FAR)
        while True:
            try:
                size = length if view.rows or view.key_only else min(length, FAR_SQUARE)
                return view.bias(1 if view.rows else size, size, dtype)[:, -1]
            except NotAskedError:
                length //= 2
                if length < 64:
                    raise

    @cached_property
    def broken(self) -> tuple[int, int] | None:
        """The nearest distance at which the bias is no number, −∞ apart, and in how many keys.

        Keys before the query alone are looked at, of the last query.
        """
        seq = self.seen.shape[-1]
        rows = [self.view.bias(seq, seq)[:, -1]]
        if not (self.view.fixed or self.view.slopes_only):
            with suppress(NotAskedError):
                rows.append(self.longest_row(torch.float32))
        for row in rows:
            lost = (row.isnan() | row.isposinf()).any(0).nonzero()
            if len(lost):
                return row.shape[-1] - 1 - int(lost.max()), row.shape[-1]
        return None

    @cached_property
    def parting(self) -> biases.Parting | None:
        """Where a linear bias leaves its line, if it does; None too where no long row is given."""
        if self.linear is None or self.view.slopes_only or self.view.fixed:
            return None
        try:
            return biases.parting(self.longest_row(torch.float32), self.linear.fall)
        except NotAskedError:
            return None

    @property
    def identity(self) -> str:
        """One line."""
        if self.linear is not None and self.linear.said:
            return self._of_slopes(self.linear)
        if self.buckets is not None and self.buckets.kind == "t5":
            ours = self.buckets.ours(len(self.seen))
            return f"{self.buckets.said}: equal to {ours}, {self._looked_up(self.buckets)}"
        if self.buckets is not None and self.buckets.said:
            return f"{self.buckets.said}: {self._looked_up(self.buckets)}"
        if self.learns:
            return "a learned bias"
        return ""

    def _of_slopes(self, found: biases.Linear) -> str:
        """What it equals, if it does so in all heads and at every distance looked at."""
        if bool((found.fall < 0).any()) or self.parting is not None or self.strays is not None:
            return ""
        if self.broken is not None:
            return ""
        said = f"{found.said}: equal to {found.ours} within {100 * found.off:.1g} % of a slope"
        said += self._rounded(found)
        if biases.knows_later_keys(self.seen, self.given, found.fall):
            return said
        return f"{said}, for keys up to the query's; those after it receive another bias"

    def _rounded(self, found: biases.Linear) -> str:
        """That its line is told by 16 bits alone, if it is."""
        with suppress(NotAskedError):
            row = self.seen[:, -1] if self.view.fixed else self.longest_row(torch.float32)
            line = found.fall[:, None] * torch.arange(row.shape[-1])
            if biases.room(row, line) != biases.room(line, line):
                return ", as far as numbers of 16 bits tell"
        return ""

    def _looked_up(self, found: biases.Buckets) -> str:
        return f"bucket for bucket to distance {(len(found.index) - 1) // 2}"

    def shown(self, call: str) -> str:
        """Lines that show a bias of ``call``, its lengths, to whoever has the subject."""
        name = self.view.text.split("(")[0]
        return f"import torch\nbias = {name}({call})\n# [heads, q_len, k_len]"
