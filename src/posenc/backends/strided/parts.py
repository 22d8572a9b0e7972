"""Attention to some of the keys: blocks that hold a bias as a vector, or a few rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.base import Request
from posenc.backends.explicit import attend_explicitly
from posenc.backends.specification import AttentionSpecification
from posenc.backends.strided.blocks import Block, bias_of, blocks, content_of, dead_rows
from posenc.backends.strided.flash import flash, serves
from posenc.backends.strided.gradients import ELEMENTS, add_all_gradients, narrowed
from posenc.backends.strided.results import Backward, Merged, Part, Partial, merge, nothing_seen
from posenc.backends.strided.segments import Segment, runs_of_keys, segments_of
from posenc.backends.strided.toeplitz import Toeplitz, toeplitz
from posenc.backends.strided.wide_blocks import attend_into, may_be_wide
from posenc.encodings.base import ScoreEncoding, working_dtype

MOST_RUNS = 64  # of keys, each with a call of its own


def partial_attention(request: Request) -> Part:
    """The cheapest part that means what the request says; ``attn_mask`` and sinks are left out."""
    spec = request.specification
    if request.distance_alone:
        runs = runs_of_keys(spec)
        if not isinstance(runs, str) and len(runs) <= MOST_RUNS:
            parts = [_of_run(request, run) for run in runs]
            found = [part for part in parts if part is not None]
            if len(found) == len(parts):
                return found[0] if len(found) == 1 else InRuns(tuple(runs), tuple(found))
    return InRows(tuple(request.scores), spec)


def _of_run(request: Request, run: slice) -> "InSegments | None":
    """For one run of keys; ``None`` where queries and these keys have no segments."""
    found = in_segments(request, request.specification.of_keys(run))
    return None if isinstance(found, str) else found


def in_segments(request: Request, spec: AttentionSpecification) -> "InSegments | str":
    """For keys that are one run; or why queries and these keys have no segments."""

    def bias(lengths: tuple[int, int, int]) -> Toeplitz:
        order = {"is_causal": spec.is_causal, "window": spec.window}
        on = {"dtype": request.dtype, "device": spec.device}
        return toeplitz(request.scores, *lengths, **order, **on)  # type: ignore[arg-type]

    if spec.is_one_segment:  # also in a graph, where lengths are symbols and cannot be compared
        everything, offset = slice(None), spec.k_len - spec.q_len
        lengths = spec.q_len, spec.k_len, offset
        run = Segment(everything, everything, everything, offset)
        return InSegments((run,), (0,), (lengths,), (bias(lengths),), spec.softcap)
    segments = segments_of(spec)
    if isinstance(segments, str):
        return segments
    every = tuple(dict.fromkeys(segment.lengths for segment in segments))
    numbers = tuple(every.index(segment.lengths) for segment in segments)
    return InSegments(segments, numbers, every, tuple(map(bias, every)), spec.softcap)


@dataclass(frozen=True, eq=False)
class InRuns:
    """Keys in several runs, one after the other, their results merged."""

    runs: tuple[slice, ...]  # where each lies
    parts: "tuple[InSegments, ...]"  # attention to each

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The biases."""
        return tuple(t for part in self.parts for t in part.tensors)

    def above(self, least: Float[Tensor, "heads"]) -> "InRuns":
        """Without the distances whose bias lies below what can matter to a head."""
        return replace(self, parts=tuple(part.above(least) for part in self.parts))

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for these keys."""
        made = nothing_seen(q, v)
        for run, part in zip(self.runs, self.parts, strict=True):
            if part.segments:
                made = merge(made, part(q, k[:, :, run], v[:, :, run], scale=scale))
        return made

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and the biases."""
        dq = torch.zeros_like(q, dtype=working_dtype(q.dtype))
        sides, learned = [], []
        of_runs = merged._replace(alone=False)
        for run, part in zip(self.runs, self.parts, strict=True):
            some = part.gradients(q, k[:, :, run], v[:, :, run], of_runs, scale=scale)
            dq += some[0]
            sides.append(some[1:3])
            learned += some[3:]
        dk, dv = (torch.cat(one, dim=2) for one in zip(*sides, strict=True))
        return dq, dk, dv, *learned


@dataclass(frozen=True, eq=False)
class InSegments:
    """Runs of queries and keys one position apart, the bias of each a vector."""

    segments: tuple[Segment, ...]  # the runs
    numbers: tuple[int, ...]  # the number of the bias of each run
    lengths: tuple[tuple[int, int, int], ...]  # of the runs of each bias
    biases: tuple[Toeplitz, ...]  # those that differ
    softcap: float | None = None  # c in c · tanh(score / c), before biases are added

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The biases."""
        return tuple(bias.values for bias in self.biases)

    def above(self, least: Float[Tensor, "heads"]) -> "InSegments":
        """Without the distances whose bias lies below what can matter to a head."""
        cut = tuple(
            replace(b, values=b.values.masked_fill(b.values < least[:, None], -torch.inf))
            for b in self.biases
        )
        return replace(self, biases=cut)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for these keys."""
        made, k, v = nothing_seen(q, v), k.to(q.dtype), v.to(q.dtype)
        for segment, _, bias in self.each():
            there, queries = segment.rows, q[segment.rows]
            keys, values = k[segment.columns], v[segment.columns]
            if self.softcap is None and may_be_wide(queries, keys, values):
                attend_into(made.out[there], made.lse[there], queries, keys, values, bias,
                            segment.offset, scale=scale)  # fmt: skip
                continue
            for block in blocks(queries.shape, keys.shape, bias, segment.offset):
                for rows in _small(block, queries, v, self.softcap):
                    some = content_of(rows, queries, keys, values)
                    found = flash(
                        *some, bias_of(rows, bias), dead_rows(rows, bias), scale=scale,
                        softcap=self.softcap,
                    )  # fmt: skip
                    where = segment.batch, rows.heads, _within(segment, rows)
                    made.out[where], made.lse[where] = found[0].flip(-2), found[1].flip(-1)
        return made

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and the biases."""
        wide, k, v = working_dtype(q.dtype), k.to(q.dtype), v.to(q.dtype)
        dq, dk, dv = (torch.zeros_like(t, dtype=wide) for t in (q, k, v))
        learned = [torch.zeros_like(bias.values) for bias in self.biases]
        for segment, number, bias in self.each():
            rows_of, keys_of = segment.rows, segment.columns
            content = q[rows_of], k[keys_of], v[keys_of]
            grads = [dq[rows_of], dk[keys_of], dv[keys_of], learned[number]]
            out, lse, grad, delta = (each[rows_of] for each in merged[:4])
            of_all = Merged(out, lse, grad, delta, merged.alone)
            run = Backward(content, bias, of_all, segment.offset, scale, self.softcap)
            add_all_gradients(grads, run)
        return dq, dk, dv, *learned

    def each(self) -> Iterator[tuple[Segment, int, Toeplitz]]:
        """Every run, with the number of its bias and that bias."""
        for segment, number in zip(self.segments, self.numbers, strict=True):
            yield segment, number, self.biases[number]


def _small(block: Block, q: Tensor, v: Tensor, softcap: float | None) -> list[Block]:
    """The block, in pieces whose scores stay small where they are formed; none without keys."""
    if block.keys.start == block.keys.stop:
        return []
    return [block] if serves(q, v, softcap) else narrowed(block, len(q))


def _within(segment: Segment, rows: Block) -> slice:
    begin = segment.queries.start or 0
    return slice(begin + rows.queries.start, begin + rows.queries.stop)


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
        k, v = k.to(q.dtype), v.to(q.dtype)
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
                content = q[:, :, rows], k.to(q.dtype), v.to(q.dtype)
                some = [t.detach().requires_grad_() for t in content]
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
