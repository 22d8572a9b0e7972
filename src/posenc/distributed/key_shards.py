"""Decoding with a key/value cache that is cut among ranks: each meets its part, results merge."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from posenc.arguments import check_whole
from posenc.backends.base import Asked, Backend, Request
from posenc.backends.choice import check_heads
from posenc.backends.specification import AttentionSpecification
from posenc.backends.strided.parts import partial_attention
from posenc.backends.strided.results import Part, Partial, merge, with_sinks
from posenc.distributed.collectives import everyones, group_of
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.guards import recorded
from posenc.positions import consecutive


class KeyShards:
    """Queries that are the same on every rank, and keys of which each rank holds some.

    Each key is held by exactly one rank; a rank may hold any number of keys, or none. A step moves
    one result and one number a head and query, however long the cache is. There are no gradients.
    ``posenc.transformer.KeyValueCache(shards=...)`` keeps an encoder's.

    Args:
        group: A process group, or a mesh of one dimension; all processes if not given.
        run: How many tokens after one another a rank keeps in a cache before the next one does.

    Example:
        >>> import torch.distributed as dist
        >>> from posenc import attention
        >>> if not dist.is_initialized():
        ...     dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> q, k = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 5, 8)
        >>> attention(q, k, k, q_positions=[9], k_positions=[9, 2, 5, 7, 0],
        ...           is_causal=True, shards=KeyShards()).shape
        torch.Size([1, 2, 1, 8])
    """

    cuts_keys_alone = True

    def __init__(self, group: dist.ProcessGroup | DeviceMesh | None = None, *, run: int = 256):
        check_whole(run=run)
        self.group, self.run = group_of(group), run

    def __repr__(self) -> str:
        return f"KeyShards(rank={self.group.rank()} of {self.group.size()}, run={self.run})"

    def kept(self, first: int, count: int, device: torch.device) -> Tensor:
        """Which of the tokens at ``first``, ``first`` + 1, … of a row this rank keeps."""
        places = consecutive(count, start=first, device=device)
        of_rank = places // self.run % self.group.size()
        return (of_rank == self.group.rank()).nonzero().flatten()

    def check(self, scores: Sequence[ScoreEncoding]) -> None:
        """Raise for an encoding that needs the keys of all ranks together."""
        for encoding in scores:
            if not encoding.is_pairwise or encoding.reads_hidden:
                raise ValueError(f"{type(encoding).__name__} needs the keys of all ranks together.")

    def spreading(self, given: AttentionSpecification) -> "CutKeys":
        """What ``posenc.attention(..., shards=...)`` asks; see there."""
        if given.q_positions is None:
            raise ValueError("Keys are cut among ranks; pass q_positions and k_positions.")
        return CutKeys(self, given)


@dataclass(frozen=True)
class CutKeys:
    """One call: see ``posenc.backends.base.Spreading``."""

    shards: KeyShards
    specification: AttentionSpecification

    def considered(self, asked: Asked) -> tuple[Backend, str]:
        """The one way there is."""
        scores, spec = asked.scores, asked.specification
        check_heads(scores, asked.sizes.heads, spec.softcap)
        self.shards.check(scores)
        unknown = {"spread": asked.spread, "backend": asked.backend, "attn_mask": spec.attn_mask,
                   "dropout_p": asked.dropout_p or None}  # fmt: skip
        for name, value in unknown.items():
            if value is not None:
                raise ValueError(f"{name} was given; KeyShards merges results in one way.")
        dtype = working_dtype(asked.sizes.dtype)
        part = partial_attention(Request(scores, spec, dtype, 0.0, asked.table, insisted=True))
        merged = MergedResults(self.shards, part, spec.sinks)
        return merged, f"merge: {merged.why}"


@dataclass(frozen=True, eq=False)
class MergedResults:
    """Attention to this rank's keys, merged with that of all others."""

    shards: KeyShards
    part: Part
    sinks: Tensor | None
    name = "merge"
    why = "each rank meets its own keys, and results join by their log-sum-exp"
    reads_padding = True

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, *, scale: float, dropout_p: float
    ) -> Tensor:
        learned = [] if self.sinks is None else [self.sinks]
        if recorded(query, key, value, *learned, *self.part.tensors):
            raise ValueError("KeyShards has no gradients. Decode under torch.no_grad().")
        with torch.no_grad():
            own = self.part(query, key, value, scale=scale)
            every = everyones(torch.cat((own.out, own.lse.unsqueeze(-1)), -1), self.shards.group)
            whole = Partial(every[0, ..., :-1], every[0, ..., -1])
            for other in every[1:]:
                whole = merge(whole, Partial(other[..., :-1], other[..., -1]))
            if self.sinks is not None:
                whole = with_sinks(whole, self.sinks)
        return whole.out.to(query.dtype)
