"""A bias of distance as one vector seen as a matrix: nothing of size queries × keys is held.

Sinks and soft capping go with it, by the log-sum-exp of each row.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from posenc.backends.base import Backend, Request
from posenc.backends.masks import nothing_of
from posenc.backends.specification import known
from posenc.backends.strided.autograd import attend_to_part
from posenc.backends.strided.blocks import ROWS
from posenc.backends.strided.flash import serves
from posenc.backends.strided.parts import InSegments, in_one_segment, in_segments
from posenc.backends.strided.segments import Segment, segments_of
from posenc.backends.strided.toeplitz import Toeplitz, toeplitz
from posenc.backends.strided.wide_blocks import attend
from posenc.guards import eager, may_look, transformed

MANY, SHORTEST = 64, 4  # runs, and queries in one of them on average, that pay for their calls
SMALL = 128 * 128  # pairs of a head, up to which a matrix is cheaper than looking for structure


@dataclass(frozen=True, eq=False)
class Strided:
    """Runs of queries and keys, the bias of each a vector.

    Attributes:
        segments: The runs; ``None``: all queries and keys are one.
        biases: The bias of each.
        offsets: Position of the first query less that of the first key, of each.
    """

    why: str
    segments: tuple[Segment, ...] | None
    biases: tuple[Toeplitz, ...]
    offsets: tuple[int, ...]
    name = "strided"
    reads_padding = False

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        if self.segments is None:
            return _attend(query, key, value, self.biases[0], self.offsets[0], scale, dropout_p)
        out = query.new_zeros(*query.shape[:-1], value.shape[-1])
        if not self.segments:
            return out + nothing_of(query, key, value)
        for segment, bias in zip(self.segments, self.biases, strict=True):
            some_q = query[segment.batch, :, segment.queries]
            some_k, some_v = (t[segment.batch, :, segment.keys] for t in (key, value))
            out[segment.batch, :, segment.queries] = _attend(
                some_q, some_k, some_v, bias, segment.offset, scale, dropout_p
            )
        return out


@dataclass(frozen=True, eq=False)
class StridedWithSum:
    """The same where a sink joins each row, or scores are capped: by the log-sum-exp of rows.

    Attributes:
        part: The runs, the bias of each, and the cap.
        sinks: ``[heads]``, if there are any.
    """

    why: str
    part: InSegments
    sinks: Tensor | None
    name = "strided"
    reads_padding = False

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        assert not dropout_p
        if not self.part.segments:
            nothing = nothing_of(query, key, value)
            return query.new_zeros(*query.shape[:-1], value.shape[-1]) + nothing
        part = self._within_reach(query, key, value, scale)
        return attend_to_part(part, query, key, value, self.sinks, scale=scale)

    def _within_reach(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> InSegments:
        """Without the distances at which no weight can reach the last bit of a result."""
        pairs = tuple(zip(self.part.biases, self.part.lengths, strict=True))
        cut = [_may_cut(bias, lengths) for bias, lengths in pairs]
        if not (may_look(query) and query.numel() and any(cut)):
            return self.part
        bound = _largest_score(query, key, scale)
        if self.part.softcap is not None:
            bound = bound.clamp(max=self.part.softcap)
        disparity = _disparity(query, value)
        biases = (
            bias.cut_off(bound, disparity, lengths[1]) if cuts else bias
            for (bias, lengths), cuts in zip(pairs, cut, strict=True)
        )
        return replace(self.part, biases=tuple(biases))


def strided(request: Request) -> Backend | str:
    """The backend, or why it cannot serve."""
    spec = request.specification
    refusal = _refusal(request)
    if refusal is not None:
        return refusal
    if spec.softcap is not None or spec.sinks is not None:
        return _with_sum(request)

    def bias(q_len: int, k_len: int, offset: int) -> Toeplitz:
        return toeplitz(
            request.scores,  # type: ignore[arg-type]
            q_len,
            k_len,
            offset,
            is_causal=spec.is_causal,
            window=spec.window,
            dtype=request.dtype,
            device=spec.device,
        )

    why = "positions run on by one and only distance counts"
    if spec.is_one_segment:  # also in a graph, where lengths are symbols and cannot be compared
        offset = spec.k_len - spec.q_len
        return Strided(why, None, (bias(spec.q_len, spec.k_len, offset),), (offset,))
    segments = segments_of(spec)
    if isinstance(segments, str):
        return segments
    if not request.insisted and _are_scattered(segments):
        return "the queries stand apart, each a run of its own"
    biases = {lengths: bias(*lengths) for lengths in {segment.lengths for segment in segments}}
    every = tuple(biases[segment.lengths] for segment in segments)
    return Strided(why, segments, every, tuple(segment.offset for segment in segments))


def _with_sum(request: Request) -> Backend | str:
    spec = request.specification
    part = in_segments(request, spec)
    if isinstance(part, str):
        return part
    if not request.insisted and _are_scattered(part.segments):
        return "the queries stand apart, each a run of its own"
    why = "positions run on by one and only distance counts"
    if spec.softcap is not None:
        why += "; capped scores are formed a few at a time"
    return StridedWithSum(why, part, spec.sinks)


def _may_cut(bias: Toeplitz, lengths: tuple[int, int, int]) -> bool:
    """Whether far keys may be left out: each query sees the key at distance 0, no bias learns."""
    q_len, k_len, offset = lengths
    learns = bias.values.requires_grad and torch.is_grad_enabled()
    # The cut-off counts on the key at distance 0, which every query must see.
    return not learns and offset >= 0 and offset + q_len <= k_len and bias.falls_far(k_len)


def _refusal(request: Request) -> str | None:
    spec = request.specification
    if not request.biases_alone or not all(e.has_profile for e in request.scores):
        return "an encoding needs more than a distance"
    with_sum = spec.softcap is not None or spec.sinks is not None
    # A layer that is run again for its gradients must drop the weights that it dropped without.
    if request.dropout_p and (request.may_learn or with_sum):
        return "weights are dropped where its own backward pass forms them anew"
    if transformed() and (request.learns or not _are_known(request)):
        return "a bias learns, and its own backward pass cannot be transformed"
    if torch.compiler.is_compiling() and request.learns:
        return "a bias learns, and a graph holds no blocks"
    if with_sum and not (eager() and str(spec.device) != "meta"):
        return "it works block by block, which can be neither recorded nor transformed"
    if request.insisted:
        return None
    if known(spec.q_len * spec.k_len <= SMALL):
        return "there are few pairs"
    if not request.scores and spec.hides_padding_alone and not with_sum:
        return "padding alone needs no matrix"
    return None


def _are_known(request: Request) -> bool:
    """Whether one may look at all parameters, from which blocks follow."""
    return all(may_look(p) for encoding in request.scores for p in encoding.parameters())


def _are_scattered(segments: tuple[Segment, ...]) -> bool:
    """Whether there are many runs of hardly a query each, so that a matrix is cheaper."""
    queries = sum(segment.lengths[0] for segment in segments)
    return len(segments) > MANY and queries < SHORTEST * len(segments)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Toeplitz,
    offset: int,
    scale: float,
    dropout_p: float,
) -> Tensor:
    if bias.values.requires_grad and torch.is_grad_enabled():
        assert not dropout_p  # the backward pass forms weights anew
        part = in_one_segment(query, key, bias, offset)
        return attend_to_part(part, query, key, value, None, scale=scale)
    if query.device.type != "cpu" and bias.values.dtype != query.dtype:
        bias = replace(bias, values=bias.values.to(query.dtype))
    q_len, k_len = query.shape[-2], key.shape[-2]
    known = may_look(query) and may_look(key) and may_look(value)
    if known and query.numel() and _may_cut(bias, (q_len, k_len, offset)):
        bias = bias.cut_off(_largest_score(query, key, scale), _disparity(query, value), k_len)
    if not dropout_p and _takes_own_backward(query, key, value):
        part = in_one_segment(query, key, bias, offset)
        return attend_to_part(part, query, key, value, None, scale=scale)
    return attend(query, key, value, bias, offset, scale=scale, dropout_p=dropout_p)


def _takes_own_backward(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether gradients are wanted that blocks can add where they belong.

    Autograd would make those of all keys anew for each block, mostly zeros, and add them up.
    """
    looks = eager() and may_look(query)
    if not (looks and serves(query, value)) or torch.is_autocast_enabled("cpu"):
        return False
    wanted = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return wanted and query.shape[2] > ROWS and key.shape[2] > 0 and len(query) > 0


def _largest_score(query: Tensor, key: Tensor, scale: float) -> Tensor:
    """A bound of |query · key| · scale for each query head, by the lengths of the longest."""
    with torch.no_grad():
        lengths = [t.float().norm(dim=-1).amax(-1) for t in (query, key)]
        keys = lengths[1].repeat_interleave(query.shape[1] // key.shape[1], dim=1)
        return (lengths[0] * keys).amax(0) * abs(scale)


def _disparity(query: Tensor, value: Tensor) -> Tensor:
    """log(longest / shortest) of the values that each query head sees, infinite if one is zero."""
    with torch.no_grad():
        lengths = value.float().norm(dim=-1).transpose(0, 1).flatten(1)
        apart = (lengths.amax(1) / lengths.amin(1)).log().nan_to_num(nan=torch.inf)
        return apart.repeat_interleave(query.shape[1] // value.shape[1])
