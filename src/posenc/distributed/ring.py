"""Keys and values go round, and each rank's queries meet them part by part."""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from posenc.backends.base import Request
from posenc.backends.masks import nothing_of
from posenc.backends.strided.autograd import once_differentiable
from posenc.backends.strided.parts import InRuns, InSegments, partial_attention
from posenc.backends.strided.results import (
    Part,
    gradient_of_sinks,
    merge,
    merged_results,
    nothing_seen,
    with_sinks,
)
from posenc.backends.strided.toeplitz import Toeplitz, margin
from posenc.distributed.reach import may_see
from posenc.distributed.request import SpreadRequest, Way
from posenc.distributed.tokens import between
from posenc.distributed.transport import Schedule
from posenc.encodings.base import working_dtype


@dataclass(frozen=True, eq=False)
class Ring(Way):
    """Results for the keys of each rank, merged by their log-sum-exp; two ranks' keys at a time.

    At step s the keys of the rank s before this one arrive while those before them are worked
    with. Backward they go round once more, scores are formed again, and gradients go home.

    Reference:
        Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context",
        section 3 (arXiv:2310.01889).
    """

    request: SpreadRequest
    parts: tuple[Part | None, ...]  # of each rank; None where no key is seen
    profile: Tensor | None  # the bias at distances 1 − length … length − 1
    schedule: Schedule
    name = "ring"
    what = "keys and values of other ranks come here one after the other"
    why = "it holds the keys of two ranks at a time"

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        ring = self if self.profile is None else self.within_reach(query, key, value, scale)
        tensors = [t for part in ring.parts if part is not None for t in part.tensors]
        sinks = self.request.given.sinks
        out: Tensor = _Ring.apply(ring, scale, query, key, value, sinks, *tensors)  # type: ignore[assignment]
        learning = [p for e in self.request.scores for p in e.parameters() if p.requires_grad]
        if not learning or any(t.requires_grad for t in tensors):
            return out
        # A rank of padding alone: trainers that sum gradients over ranks want zeros, not none.
        local: list[Tensor] = [getattr(p, "to_local", lambda p=p: p)() for p in learning]
        return out + nothing_of(*local).to(out.dtype)

    def within_reach(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> "Ring":
        """Without the distances at which no weight can reach the last bit of a result.

        A query sees itself, whose score is bias(0) − c at least if scores lie in ±c; the key at
        distance n has bias(n) + c at most, and a value at most exp(d) times as long as its own.
        """
        assert self.profile is not None
        with torch.no_grad():
            queries, keys, values = (t.float().norm(dim=-1) for t in (query, key, value))
            real = self.cut.padding_mask
            least = values if real is None else values.where(real.unsqueeze(1), torch.inf)
            ends = [each.amax((0, 2)) for each in (queries, keys, values, -least)]
            longest = torch.cat(ends).nan_to_num(nan=torch.inf)  # which a maximum over ranks loses
            dist.all_reduce(longest, dist.ReduceOp.MAX, group=self.cut.group)
            queries, keys, values, least = longest.split([len(end) for end in ends])
            group = query.shape[1] // key.shape[1]
            bound = queries * keys.repeat_interleave(group) * abs(scale)
            bound = bound.nan_to_num(nan=torch.inf)  # such content may do anything
            disparity = (values / -least).log().nan_to_num(nan=torch.inf).repeat_interleave(group)
            at_zero = self.profile[:, self.profile.shape[1] // 2]
            length = self.cut.length
            least = at_zero - 2 * bound - disparity - margin(length, self.profile.dtype)
            matters = (self.profile >= least[:, None]).any(0).nonzero().flatten()
        reach = int((matters - self.profile.shape[1] // 2).abs().max())
        window = self.request.given.window
        schedule = _schedule(self.request, reach + 1 if window is None else min(window, reach + 1))

        def kept(part: Part | None) -> Part | None:
            return part.above(least) if isinstance(part, InRuns | InSegments) else part

        pairs = zip(self.parts, schedule.takes, strict=True)
        parts = tuple(kept(part) if takes else None for part, takes in pairs)
        return replace(self, parts=parts, schedule=schedule)


def ring(request: SpreadRequest) -> Ring | str:
    """The way, or why it cannot serve."""
    if torch.compiler.is_compiling():
        return "a graph has no sending from rank to rank"
    for encoding in request.scores:
        if not encoding.is_pairwise:
            return f"{type(encoding).__name__} looks at the tokens between a query and a key"
        if encoding.reads_hidden:
            return f"{type(encoding).__name__} reads the hidden state, which does not go round"
    if request.backend is not None:
        return f"the backend {request.backend!r} was asked for, and a ring has blocks of its own"
    schedule = _schedule(request, request.given.window)
    takes = schedule.takes
    parts = tuple(_part(request, rank) if took else None for rank, took in enumerate(takes))
    others = sum(takes) - takes[request.cut.rank]
    moves = others * request.bytes_of(request.key_value_numbers)
    return Ring(request.cut, moves, _told(parts), request, parts, _falling(request), schedule)


def _told(parts: tuple[Part | None, ...]) -> str:
    """How many of the steps have anything to see, and how scores are formed."""
    seen = [part for part in parts if part is not None]
    vectors = sum(isinstance(part, InRuns | InSegments) for part in seen)
    return (
        f"{len(seen)} of {len(parts)} steps see a key; {vectors} hold a bias as a vector, "
        f"{len(seen) - vectors} form scores a few queries at a time"
    )


def _schedule(request: SpreadRequest, window: int | None) -> Schedule:
    cut, own, given = request.cut, request.own, request.given
    others = [cut.of_rank(rank, request.whole) for rank in range(cut.world)]
    takes = tuple(may_see(own, other, given, window) for other in others)
    gives = tuple(may_see(other, own, given, window) for other in others)
    return Schedule(cut.group, takes, gives)


def _part(request: SpreadRequest, rank: int) -> Part:
    cut, own, dtype = request.cut, request.own, working_dtype(request.sizes.dtype)
    keys = own if rank == cut.rank else cut.of_rank(rank, request.whole)
    spec = replace(between(own, keys, request.given), sinks=None)
    asked = Request(request.scores, spec, dtype, 0.0, request.table, insisted=True)
    return partial_attention(asked)


def _falling(request: SpreadRequest) -> Tensor | None:
    """The bias at every distance, if it may lie so low that whole parts do not matter.

    All ranks say the same, by what is alike on all of them: each that has a bias asks the others.
    """
    cut, positions = request.cut, request.whole.positions
    told = positions is None or positions is cut.whole.positions
    biases = [each for each in request.scores if each.has_profile]
    learning = any(p.requires_grad for e in request.scores for p in e.parameters())
    if not (biases and len(biases) == len(request.scores) and told and cut.length) or learning:
        return None
    distance = torch.arange(1 - cut.length, cut.length, device=cut.device)
    dtype = working_dtype(request.sizes.dtype)
    values = torch.zeros(1, len(distance), dtype=dtype, device=cut.device)
    for bias in biases:
        values = values + bias.profile(distance, dtype=dtype)  # type: ignore[operator]
    falls = Toeplitz(values, cut.length - 1).falls_far(cut.length)
    return values.expand(request.sizes.heads, -1) if falls else None


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        ring: Ring,
        scale: float,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sinks: Tensor | None,
        *tensors: Tensor,
    ) -> Tensor:
        # What learns is told by δ, a difference that a result rounded to 16 bits would spoil.
        learns = any(ctx.needs_input_grad[5:])
        wide = working_dtype(q.dtype) if learns else q.dtype
        query = q.to(wide)
        made, schedule = nothing_seen(query, v.to(wide)), ring.schedule
        own = torch.cat((k, v), dim=-1).contiguous()
        coming = None
        for step in (0, *schedule.steps):
            there = own if coming is None else coming.arrived()
            if step + 1 in schedule.steps:
                coming = schedule.content(own, step + 1)
            part = ring.parts[schedule.source(step)]
            if part is not None and there is not None:
                keys, values = there.to(wide).split((k.shape[-1], v.shape[-1]), dim=-1)
                made = merge(made, part(query, keys, values, scale=scale))
        if sinks is not None:
            made = with_sinks(made, sinks)
        out = made.out.to(wide)
        # What it learns is saved too, so that autograd sees when somebody changes it in between.
        ctx.save_for_backward(q, k, v, out, made.lse, sinks, *tensors)
        ctx.ring, ctx.scale = ring, scale
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, out, lse, sinks, *_ = ctx.saved_tensors
        ring, schedule = ctx.ring, ctx.ring.schedule
        merged, wide = merged_results(out, lse, grad.to(out.dtype)), lse.dtype
        query = q.to(out.dtype)
        own = torch.cat((k, v), dim=-1).contiguous()
        dq, dkv = torch.zeros_like(q, dtype=wide), torch.zeros_like(own, dtype=wide)
        learned: list[tuple[Tensor, ...]] = [()] * len(ring.parts)
        coming, homeward = None, None
        for step in (0, *schedule.steps):
            source = schedule.source(step)
            there = own if coming is None else coming.arrived()
            if step + 1 in schedule.steps:
                coming = schedule.content(own, step + 1)
            part, made = ring.parts[source], None
            if part is not None and there is not None:
                keys, values = there.to(out.dtype).split((k.shape[-1], v.shape[-1]), dim=-1)
                to_q, to_k, to_v, *rest = part.gradients(
                    query, keys, values, merged, scale=ctx.scale
                )
                dq += to_q
                made, learned[source] = torch.cat((to_k, to_v), dim=-1).contiguous(), tuple(rest)
            if step == 0:
                dkv = dkv if made is None else dkv + made
                continue
            _add(dkv, homeward)
            homeward = schedule.gradients(made, dkv, step)
        _add(dkv, homeward)
        dk, dv = dkv.split((k.shape[-1], v.shape[-1]), dim=-1)
        to_sinks = None if sinks is None else gradient_of_sinks(sinks, merged)
        rest = []
        for part, found in zip(ring.parts, learned, strict=True):
            rest += [] if part is None else found or [None] * len(part.tensors)
        return None, None, dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), to_sinks, *rest


def _add(total: Tensor, transfer: Any) -> None:
    arrived = None if transfer is None else transfer.arrived()
    if arrived is not None:
        total += arrived
