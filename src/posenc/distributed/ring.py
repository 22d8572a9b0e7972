"""Keys and values go round, and each rank's queries meet them part by part."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from posenc.backends.base import Request
from posenc.backends.masks import nothing_of
from posenc.backends.strided.autograd import attend_to_part
from posenc.backends.strided.parts import InRuns, InSegments, partial_attention
from posenc.backends.strided.results import Merged, Part, Partial, merge, nothing_seen
from posenc.backends.strided.toeplitz import Toeplitz, at_distances, margin
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
        whole, sinks = Round(ring.parts, ring.schedule), self.request.specification.sinks
        out = attend_to_part(whole, query, key, value, sinks, scale=scale)
        learning = [p for e in self.request.scores for p in e.parameters() if p.requires_grad]
        if not learning or any(t.requires_grad for t in whole.tensors):
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
        window = self.request.specification.window
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
    schedule = _schedule(request, request.specification.window)
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
    cut, own, given = request.cut, request.own, request.specification
    others = [cut.of_rank(rank, request.whole) for rank in range(cut.world)]
    takes = tuple(may_see(own, other, given, window) for other in others)
    gives = tuple(may_see(other, own, given, window) for other in others)
    return Schedule(cut.group, takes, gives)


def _part(request: SpreadRequest, rank: int) -> Part:
    cut, own, dtype = request.cut, request.own, working_dtype(request.sizes.dtype)
    keys = own if rank == cut.rank else cut.of_rank(rank, request.whole)
    spec = replace(between(own, keys, request.specification), sinks=None)
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
    values = at_distances(biases, distance, is_causal=False, window=None, dtype=dtype)
    falls = Toeplitz(values, cut.length - 1).falls_far(cut.length)
    return values.expand(request.sizes.heads, -1) if falls else None


@dataclass(frozen=True, eq=False)
class Round:
    """Attention to the keys of each rank as they come."""

    parts: tuple[Part | None, ...]
    schedule: Schedule

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of all parts."""
        return tuple(t for part in self.parts if part is not None for t in part.tensors)

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Partial:
        """The result for the keys of all ranks."""
        made, widths = nothing_seen(q, v), (k.shape[-1], v.shape[-1])
        for step, there in self._coming(torch.cat((k, v), dim=-1).contiguous()):
            part = self.parts[self.schedule.source(step)]
            if part is not None and there is not None:
                keys, values = there.to(q.dtype).split(widths, -1)
                made = merge(made, part(q, keys, values, scale=scale))
        return made

    def gradients(
        self, q: Tensor, k: Tensor, v: Tensor, merged: Merged, *, scale: float
    ) -> tuple[Tensor, ...]:
        """The gradients of q, k, v and ``tensors``; those of keys and values come home."""
        merged, widths = merged._replace(alone=False), (k.shape[-1], v.shape[-1])
        wide = merged.lse.dtype
        own = torch.cat((k, v), dim=-1).contiguous()
        dq, dkv = torch.zeros_like(q, dtype=wide), torch.zeros_like(own, dtype=wide)
        learned: dict[int, list[Tensor]] = {}
        homeward = None
        for step, there in self._coming(own):
            source, made = self.schedule.source(step), None
            part = self.parts[source]
            if part is not None and there is not None:
                keys, values = there.to(q.dtype).split(widths, -1)
                to_q, to_k, to_v, *rest = part.gradients(q, keys, values, merged, scale=scale)
                dq += to_q
                made, learned[source] = torch.cat((to_k, to_v), dim=-1).contiguous(), rest
            if step == 0:
                dkv = dkv if made is None else dkv + made
                continue
            _add(dkv, homeward)
            homeward = self.schedule.gradients(made, dkv, step)
        _add(dkv, homeward)
        every = (t for source in sorted(learned) for t in learned[source])
        return dq, *dkv.split(widths, -1), *every

    def _coming(self, own: Tensor) -> Iterator[tuple[int, Tensor | None]]:
        """Each step, and what came; meanwhile the next is on its way."""
        coming, schedule = None, self.schedule
        for step in (0, *schedule.steps):
            there = own if coming is None else coming.arrived()
            if step + 1 in schedule.steps:
                coming = schedule.content(own, step + 1)
            yield step, there


def _add(total: Tensor, transfer: Any) -> None:
    arrived = None if transfer is None else transfer.arrived()
    if arrived is not None:
        total += arrived
