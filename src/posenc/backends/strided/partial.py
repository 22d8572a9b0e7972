"""Attention to some of the keys, with the log-sum-exp by which results for others join it.

With L = log Σ exp(scores) over the keys of a part, results of parts merge by the weights
exp(L_part − L), L = log Σ exp(L_part). Backward, each part forms its weights P = exp(scores − L)
anew and needs of all others no more than L and δ = rowsum(dO ∘ O):
dV = Pᵀ dO, dS = P ∘ (dO Vᵀ − δ). Neither way holds a matrix of queries × keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.backends.base import Request
from posenc.backends.explicit import attend_explicitly
from posenc.backends.specification import AttentionSpecification
from posenc.backends.strided.block_gradients import add_all_gradients
from posenc.backends.strided.blocks import Block, bias_of, blocks, content_of, dead_rows
from posenc.backends.strided.flash import flash, serves
from posenc.backends.strided.learned_bias import ELEMENTS, narrowed
from posenc.backends.strided.segments import Segment, runs_of_keys, segments_of
from posenc.backends.strided.toeplitz import Toeplitz, toeplitz
from posenc.backends.strided.wide_blocks import attend_into, may_be_wide
from posenc.encodings.base import ScoreEncoding, working_dtype

MOST_RUNS = 64  # of keys, each with a call of its own


class Partial(NamedTuple):
    """A result for some of the keys.

    Attributes:
        out: ``[batch, heads, q_len, value_dim]``, weighed among these keys, in float32 at least.
        lse: ``[batch, heads, q_len]``: log Σ exp(scores) over them; −∞ where none is seen.
    """

    out: Float[Tensor, "batch heads q_len value_dim"]
    lse: Float[Tensor, "batch heads q_len"]


class Merged(NamedTuple):
    """What the backward pass of a part must know of all parts together.

    Attributes:
        out: Their result.
        lse: Their log-sum-exp; 0 where nothing is seen at all.
        grad: The gradient of ``out``.
        delta: rowsum(grad ∘ out).
    """

    out: Tensor
    lse: Tensor
    grad: Tensor
    delta: Tensor


class Part(Protocol):
    """Attention of some queries to some keys, ready to run in both directions."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What else gradients must reach."""
        ...

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for these keys."""
        ...

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and ``tensors``, in float32 at least."""
        ...


def merge(one: Partial, other: Partial) -> Partial:
    """Both results as one.

    Example:
        >>> one = Partial(torch.tensor([[[[1.0]]]]), torch.tensor([[[0.0]]]))
        >>> other = Partial(torch.tensor([[[[4.0]]]]), torch.tensor([[[2.0]]]).log())
        >>> merge(one, other).out.round()
        tensor([[[[3.]]]])
    """
    lse = torch.logaddexp(one.lse, other.lse)
    shift = lse.masked_fill(lse == -torch.inf, 0.0)
    out = sum(part.out * (part.lse - shift).exp().unsqueeze(-1) for part in (one, other))
    return Partial(out, lse)  # type: ignore[arg-type]


def nothing_seen(q: Tensor, v: Tensor) -> Partial:
    """What attention to no keys gives, which merges with anything."""
    wide = working_dtype(q.dtype)
    return Partial(
        q.new_zeros(*q.shape[:-1], v.shape[-1], dtype=wide),
        q.new_full(q.shape[:-1], -torch.inf, dtype=wide),
    )


def with_sinks(merged: Partial, sinks: Tensor) -> Partial:
    """The same with one score more a head, which takes its share and gives no value."""
    lse = torch.logaddexp(merged.lse, sinks.to(merged.lse.dtype).view(1, -1, 1))
    shift = lse.masked_fill(lse == -torch.inf, 0.0)
    return Partial(merged.out * (merged.lse - shift).exp().unsqueeze(-1), lse)


def partial_attention(request: Request) -> Part:
    """The cheapest part that means what the request says; ``attn_mask`` and sinks are left out."""
    spec = request.specification
    relative = request.biases_alone and all(e.has_profile for e in request.scores)
    if relative:
        runs = runs_of_keys(spec)
        if not isinstance(runs, str) and len(runs) <= MOST_RUNS:
            parts = [_of_run(request, run) for run in runs]
            found = [part for part in parts if part is not None]
            if len(found) == len(parts):
                return found[0] if len(found) == 1 else InRuns(tuple(runs), tuple(found))
    return InRows(tuple(request.scores), spec)


# Biases of distance -------------------------------------------------------------------------------


def _of_run(request: Request, run: slice) -> "InSegments | None":
    """For one run of keys; ``None`` where queries and these keys have no segments."""
    found = in_segments(request, request.specification.of_keys(run))
    return None if isinstance(found, str) else found


def in_one_segment(q: Tensor, k: Tensor, bias: Toeplitz, offset: int) -> "InSegments":
    """For queries and keys that are one run each, ``offset`` apart."""
    segment = Segment(slice(None), slice(0, q.shape[2]), slice(0, k.shape[2]), offset)
    return InSegments((segment,), (segment.lengths,), (bias,))


def in_segments(request: Request, spec: AttentionSpecification) -> "InSegments | str":
    """For keys that are one run; or why queries and these keys have no segments."""
    segments, made = segments_of(spec), {}
    if isinstance(segments, str):
        return segments
    for lengths in {segment.lengths for segment in segments}:
        made[lengths] = toeplitz(
            request.scores,  # type: ignore[arg-type]
            *lengths,
            is_causal=spec.is_causal,
            window=spec.window,
            dtype=request.dtype,
            device=spec.device,
        )
    return InSegments(segments, tuple(made), tuple(made.values()), spec.softcap)


@dataclass(frozen=True, eq=False)
class InRuns:
    """Keys in several runs, one after the other, their results merged.

    Attributes:
        runs: Where each lies.
        parts: Attention to each.
    """

    runs: tuple[slice, ...]
    parts: "tuple[InSegments, ...]"

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
        for run, part in zip(self.runs, self.parts, strict=True):
            some = part.gradients(q, k[:, :, run], v[:, :, run], merged, scale=scale)
            dq += some[0]
            sides.append(some[1:3])
            learned += some[3:]
        dk, dv = (torch.cat(one, dim=2) for one in zip(*sides, strict=True))
        return dq, dk, dv, *learned


@dataclass(frozen=True, eq=False)
class InSegments:
    """Runs of queries and keys one position apart, the bias of each a vector.

    Attributes:
        segments: The runs.
        lengths: Of the runs that differ in a bias.
        biases: The bias of each.
        softcap: c in c · tanh(score / c), before biases are added.
    """

    segments: tuple[Segment, ...]
    lengths: tuple[tuple[int, int, int], ...]
    biases: tuple[Toeplitz, ...]
    softcap: float | None = None

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
        made = nothing_seen(q, v)
        for segment, _, bias in self._each():
            queries = q[segment.batch, :, segment.queries]
            keys, values = (t[segment.batch, :, segment.keys] for t in (k, v))
            if self.softcap is None and may_be_wide(queries, keys, values):
                there = segment.batch, slice(None), segment.queries
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
        wide = working_dtype(q.dtype)
        dq, dk, dv = (torch.zeros_like(t, dtype=wide) for t in (q, k, v))
        learned = [torch.zeros_like(bias.values) for bias in self.biases]
        for segment, number, bias in self._each():
            rows_of, keys_of = (
                (segment.batch, slice(None), segment.queries),
                (segment.batch, slice(None), segment.keys),
            )
            content = q[rows_of], k[keys_of], v[keys_of]
            grads = [dq[rows_of], dk[keys_of], dv[keys_of], learned[number]]
            of_all = Merged(merged.out[rows_of], merged.lse[rows_of], merged.grad[rows_of],
                            merged.delta[rows_of])  # fmt: skip
            add_all_gradients(grads, content, bias, of_all, segment.offset, scale, self.softcap)
        return dq, dk, dv, *learned

    def _each(self) -> Iterator[tuple[Segment, int, Toeplitz]]:
        for segment in self.segments:
            number = self.lengths.index(segment.lengths)
            yield segment, number, self.biases[number]


def _small(block: Block, q: Tensor, v: Tensor, softcap: float | None) -> list[Block]:
    """The block, in pieces whose scores stay small where they are formed; none without keys."""
    if block.keys.start == block.keys.stop:
        return []
    return [block] if serves(q, v, softcap) else narrowed(block, len(q))


def _within(segment: Segment, rows: Block) -> slice:
    begin = segment.queries.start
    return slice(begin + rows.queries.start, begin + rows.queries.stop)


# Everything else ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InRows:
    """A few queries at a time, whose scores are formed, encoded, weighed and forgotten.

    Attributes:
        encodings: Encodings of scores, in order, each of them pairwise.
        specification: Who stands where, and who sees whom.
    """

    encodings: tuple[ScoreEncoding, ...]
    specification: AttentionSpecification

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
