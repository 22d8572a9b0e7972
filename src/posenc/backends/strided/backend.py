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
from posenc.backends.strided.parts import InSegments, in_segments
from posenc.backends.strided.segments import Segment
from posenc.backends.strided.toeplitz import Toeplitz
from posenc.backends.strided.wide_blocks import attend
from posenc.guards import eager, may_look, transformed

MANY, SHORTEST = 64, 4  # runs, and queries in one of them on average, that pay for their calls
SMALL = 128 * 128  # pairs of a head, up to which a matrix is cheaper than looking for structure


@dataclass(frozen=True, eq=False)
class Strided:
    """Runs of queries and keys, the bias of each a vector."""

    why: str
    part: InSegments  # the runs, the bias of each, and the cap
    sinks: Tensor | None  # [heads], if there are any
    one_run: bool  # whether all queries and all keys are one run
    name = "strided"
    reads_padding = False

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        if not self.part.segments:
            nothing = nothing_of(query, key, value)
            return query.new_zeros(*query.shape[:-1], value.shape[-1]) + nothing
        part = _within_reach(self.part, query, key, value, scale)
        if self._by_its_sum(query, key, value, dropout_p):
            return attend_to_part(part, query, key, value, self.sinks, scale=scale)
        if query.device.type != "cpu":
            biases = tuple(replace(b, values=b.values.to(query.dtype)) for b in part.biases)
            part = replace(part, biases=biases)
        if self.one_run:
            offset = part.segments[0].offset
            return attend(
                query, key, value, part.biases[0], offset, scale=scale, dropout_p=dropout_p
            )
        out = query.new_zeros(*query.shape[:-1], value.shape[-1])
        for segment, _, bias in part.each():
            rows, columns = segment.rows, segment.columns
            out[rows] = attend(
                query[rows], key[columns], value[columns], bias, segment.offset, scale=scale,
                dropout_p=dropout_p,
            )  # fmt: skip
        return out

    def _by_its_sum(self, query: Tensor, key: Tensor, value: Tensor, dropout_p: float) -> bool:
        """Whether rows go by their log-sum-exp, and gradients by a backward pass that knows it.

        Autograd would make the gradients of all keys anew for each block, and add them up.
        """
        if self.sinks is not None or self.part.softcap is not None:
            return True
        if not torch.is_grad_enabled():
            return False
        if any(bias.requires_grad for bias in self.part.tensors):
            return True
        if not (eager() and may_look(query) and serves(query, value)):
            return False
        wanted = query.requires_grad or key.requires_grad or value.requires_grad
        there = query.shape[2] > ROWS and key.shape[2] > 0 and query.shape[0] > 0
        return wanted and there and not dropout_p and not torch.is_autocast_enabled("cpu")


def strided(request: Request) -> Backend | str:
    """The backend, or why it cannot serve."""
    spec = request.specification
    if not request.distance_alone:
        return "an encoding needs more than a distance"
    with_sum = spec.softcap is not None or spec.sinks is not None
    if not request.insisted:
        if known(spec.q_len * spec.k_len <= SMALL):
            return "there are few pairs"
        if not request.scores and spec.hides_padding_alone and not with_sum:
            return "padding alone needs no matrix"
    # A layer that is run again for its gradients must drop the weights that it dropped without.
    if request.dropout_p and (request.may_learn or with_sum):
        return "weights are dropped where its own backward pass forms them anew"
    if transformed() and (request.learns or not _are_known(request)):
        return "a bias learns, and its own backward pass cannot be transformed"
    if torch.compiler.is_compiling() and request.learns:
        return "a bias learns, and a graph holds no blocks"
    if with_sum and not (eager() and str(spec.device) != "meta"):
        return "it works block by block, which can be neither recorded nor transformed"
    part = in_segments(request, spec)
    if isinstance(part, str):
        return part
    if not request.insisted and _are_scattered(part.segments):
        return "the queries stand apart, each a run of its own"
    why = "positions run on by one and only distance counts"
    if spec.softcap is not None:
        why += "; capped scores are formed a few at a time"
    return Strided(why, part, spec.sinks, spec.is_one_segment)


def _are_known(request: Request) -> bool:
    """Whether one may look at all parameters, from which blocks follow."""
    return all(may_look(p) for encoding in request.scores for p in encoding.parameters())


def _are_scattered(segments: tuple[Segment, ...]) -> bool:
    """Whether there are many runs of hardly a query each, so that a matrix is cheaper."""
    if len(segments) <= MANY:
        return False
    return sum(segment.lengths[0] for segment in segments) < SHORTEST * len(segments)


def _within_reach(
    part: InSegments, query: Tensor, key: Tensor, value: Tensor, scale: float
) -> InSegments:
    """Without the distances at which no weight can reach the last bit of a result."""
    if not (may_look(query) and may_look(key) and may_look(value) and query.numel()):
        return part
    cut = [_may_cut(bias, lengths) for bias, lengths in zip(part.biases, part.lengths, strict=True)]
    if not any(cut):
        return part
    with torch.no_grad():
        group = query.shape[1] // key.shape[1]
        q, k = (t.float().norm(dim=-1).amax(-1) for t in (query, key))
        # A bound of |query · key| · scale for each query head, by the lengths of the longest.
        bound = (q * k.repeat_interleave(group, dim=1)).amax(0) * abs(scale)
        if part.softcap is not None:
            bound = bound.clamp(max=part.softcap)
        # log(longest / shortest) of the values that a head sees, infinite if one is zero.
        lengths = value.float().norm(dim=-1).transpose(0, 1).flatten(1)
        apart = (lengths.amax(1) / lengths.amin(1)).log().nan_to_num(nan=torch.inf)
        apart = apart.repeat_interleave(group)
    biases = (
        bias.cut_off(bound, apart, of[1]) if cuts else bias
        for bias, of, cuts in zip(part.biases, part.lengths, cut, strict=True)
    )
    return replace(part, biases=tuple(biases))


def _may_cut(bias: Toeplitz, lengths: tuple[int, int, int]) -> bool:
    """Whether far keys may be left out: each query sees the key at distance 0, no bias learns."""
    q_len, k_len, offset = lengths
    learns = bias.values.requires_grad and torch.is_grad_enabled()
    return not learns and offset >= 0 and offset + q_len <= k_len and bias.falls_far(k_len)
