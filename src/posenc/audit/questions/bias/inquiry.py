"""A subject that gives a bias for scores, with what several questions need of it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.bias import SEQ, BiasView
from posenc.audit.adapters.calls import answers, most_taken
from posenc.audit.identity import biases, patterns
from posenc.audit.questions.asking import Inquiry
from posenc.audit.report import NotAskedError

FAR, FAR_SQUARE = 4096, 1024  # so many keys are looked at of one query, and of all
FAR_ROWS = 600  # up to which distance rows of a table are looked up
LARGEST_SQUARE = FAR_SQUARE + 2  # where a table may end at a square, or at its class token
NO_WEIGHT = 50.0  # numbers so far below others of a window leave a key no weight in float32


@dataclass
class BiasInquiry(Inquiry):
    """A subject that gives a bias, with what several questions need of it."""

    view: BiasView

    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        return torch.zeros(seq, seq)

    def called(self, x: Tensor, at: Tensor | None = None, by: Any = None) -> list[Tensor]:
        return [self.view.bias(len(x), len(x), x.dtype, by)]

    def most(self, count: int) -> int:
        return self.view.fixed or min(count, SEQ)

    @property
    def longest(self) -> int:
        return self.far_square.shape[-1]

    def learned(self, thing: Any) -> dict[str, nn.Parameter]:
        every, is_method = super().learned(thing), "." in self.view.text.split("(")[0]
        return {name: p for name, p in every.items() if not is_method or self._reads(name)}

    @cached_property
    def seen(self) -> Tensor:
        """What a softmax sees of the bias of some tokens, float64."""
        return self._longest(lambda seq: self.view.seen(seq, seq), 2 * SEQ)

    @cached_property
    def given(self) -> Tensor:
        """The bias of the same square, as it comes."""
        seq = self.seen.shape[-1]
        return self.view.bias(seq, seq)

    @cached_property
    def far_square(self) -> Tensor:
        """The same of as many tokens as it gives, up to 600; −∞ for keys that it hides."""
        most = max(self.seen.shape[-1], min(FAR_ROWS, self.length))
        return self._longest(lambda seq: self.masked(seq, seq), most)

    def masked(self, q_len: int, k_len: int) -> Tensor:
        """What a softmax sees, with −∞ for all that it hides."""
        hidden = patterns.hidden(self.view.bias(q_len, k_len))
        return self.view.seen(q_len, k_len).masked_fill(hidden, -torch.inf)

    def _longest(self, call: Callable[[int], Tensor], most: int) -> Tensor:
        """``call`` of as many tokens up to ``most`` as it answers, or of its only number."""
        most = self.view.fixed or most
        with suppress(NotAskedError):
            return call(most)
        return call(most_taken(lambda seq: answers(lambda: call(seq)), most - 1))

    @cached_property
    def mask(self) -> patterns.Mask | None:
        """Which keys it hides, where it gives numbers for each query."""
        if self.view.slopes_only or self.view.key_only or self.broken is not None:
            return None
        return patterns.mask(self.far_square.isneginf())

    # Along which differences it goes.

    @cached_property
    def room(self) -> float:
        """What numbers of one diagonal may be apart, as a share of the largest."""
        seq, line = self.far_square.shape[-1], None
        if (found := biases.linear(self.seen, self.given)) is not None:
            line = found.fall[:, None] * torch.arange(seq)
        return biases.room(self.view.bias(seq, seq), line)

    @cached_property
    def strays(self) -> int | None:
        """The head whose diagonals differ most, if they do by more than rounding."""
        each, sizes = patterns.along(self.far_square)
        shares = each / sizes.masked_fill(sizes == 0, 1.0)  # a head may be 128 times another
        head = int(shares.argmax())
        return head if shares[head] > self.room else None

    @cached_property
    def window(self) -> patterns.Window | None:
        """The window by whose sides it goes, where it does not by distance alone."""
        squares = () if self.strays is None else self._squares()
        found = (patterns.window(seen, self.room, oblong=oblong) for seen, oblong in squares)
        return next(filter(None, found), None)

    def _squares(self) -> Iterator[tuple[Tensor, bool]]:
        """Where a window is looked for, and whether it may be oblong."""
        far, fixed = self.far_square, self.view.fixed
        yield far, not fixed and len(far[0]) < min(FAR_ROWS, self.length)
        if len(far[0]) == FAR_ROWS:
            yield self._longest(lambda seq: self.view.seen(seq, seq), LARGEST_SQUARE), False
        if fixed:  # -100 hides what another window has
            top = far.amax((1, 2), keepdim=True)
            yield far.masked_fill(far < top - NO_WEIGHT, -torch.inf), False
            yield self.seen, True

    # What it is made of.

    @cached_property
    def numbers(self) -> int:
        """The size of the parameters of which it is made, without those of projections beside."""
        learned = self.learned(self.view.subject.fresh())
        return sum(p.numel() for name, p in learned.items() if self._reads(name))

    def _reads(self, name: str) -> bool:
        """Whether it is another where a parameter is."""
        thing, seq = self.view.subject.fresh(), self.given.shape[-1]
        with torch.no_grad():
            p = thing.get_parameter(name)
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(2)).to(p))
        return not torch.equal(self.view.bias(seq, seq, by=thing), self.given)

    @cached_property
    def computes(self) -> bool:
        """Whether it is no table: keys of one query receive more numbers than it learns."""
        return sum(len(row.unique()) for row in self.seen[:, -1]) > self.numbers

    @property
    def is_square(self) -> bool:
        """Whether it goes by the rows and columns of a square."""
        return self.window is not None and self.window.is_square

    @cached_property
    def linear(self) -> biases.Linear | None:
        """Its slopes, if it falls linearly; the first row of a square alone does not count."""
        return None if self.is_square else biases.linear(self.seen, self.given)

    @cached_property
    def buckets(self) -> biases.Buckets | None:
        """The buckets by which it reads a table, if it does."""
        thing, fixed = self.view.subject.fresh(), self.view.fixed
        if not isinstance(thing, nn.Module) or self.is_square:
            return None
        with suppress(NotAskedError):
            made = self._longest(lambda seq: self.view.bias(seq, seq, by=thing), FAR_ROWS)
            if (found := biases.looked_up(made.double(), thing)) is not None:
                rule, count = biases.buckets(*found), made.shape[-1]
                if rule.kind == "clipped" and (fixed or count < FAR_ROWS):  # it gives no more
                    return replace(rule, max_distance=min(rule.max_distance, count - 1))
                return rule
        return None

    # Far keys.

    def longest_row(self, dtype: torch.dtype) -> Tensor:
        """The bias of the last of as many keys as it gives, ``[heads, keys]``."""
        view = self.view
        most = min(self.length, FAR if view.rows or view.key_only else FAR_SQUARE)
        row = lambda size: view.bias(1 if view.rows else size, size, dtype)[:, -1]  # noqa: E731
        return self._longest(row, max(SEQ + 1, most))

    def visible_row(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The same without keys that are hidden from a head, and how far each stands away."""
        row = self.longest_row(dtype)
        away = patterns.hidden(row[:, None])[:, 0].any(0)
        distance = torch.arange(row.shape[-1] - 1, -1, -1, dtype=torch.float64)
        return row[:, ~away], distance[~away]

    @cached_property
    def broken(self) -> int | None:
        """The nearest distance, of keys up to the query's, at which the bias is no number."""
        row = self.longest_row(torch.float32)
        lost = (row.isnan() | row.isposinf()).any(0).nonzero()
        return row.shape[-1] - 1 - int(lost.max()) if len(lost) else None

    @cached_property
    def parting(self) -> tuple[int, int, float, float] | None:
        """Where a linear bias leaves its line, if it does; None too where no long row is given."""
        if self.linear is None or self.view.slopes_only or self.view.fixed:
            return None
        return biases.parting(*self.visible_row(torch.float32), self.linear.fall)

    @property
    def identity(self) -> str:
        """One line."""
        slips = f", though it {self.mask.said}" if self.mask is not None and self.mask.slip else ""
        if self.linear is not None and self.linear.said:
            return self._of_slopes(self.linear, slips)
        if (found := self.buckets) is not None and found.said:
            ours = f"equal to {found.ours(len(self.seen))}, " if found.kind == "t5" else ""
            ours += f"bucket for bucket to distance {(len(found.index) - 1) // 2}"
            if not slips and found.kind == "t5" and not found.knows_later_keys:
                slips = ", for keys up to the query's; those after it read other rows"
            return f"{found.said}: {ours}{slips}"
        kind = "a learned bias" if self.numbers else ""
        return f"{kind or 'a bias'} {self.window.said}" if self.window and self.is_square else kind

    def _of_slopes(self, found: biases.Linear, slips: str) -> str:
        """What it equals, if it does so in all heads and at every distance looked at."""
        parts = (self.parting, self.strays, self.broken)
        if bool((found.fall < 0).any()) or any(part is not None for part in parts):
            return ""
        said = f"{found.said}: equal to {found.ours} within {100 * found.off:.1g} % of a slope"
        row, distance = self.visible_row(torch.float32)
        line = found.fall[:, None] * distance
        if biases.rounding(row, line):
            said += ", as far as numbers of 16 bits tell"
        if slips or biases.knows_later_keys(self.seen, self.given, found.fall):
            return said + slips
        return f"{said}, for keys up to the query's; those after it receive another bias"
