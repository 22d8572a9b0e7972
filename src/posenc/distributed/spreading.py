"""One call of attention over shards: the ways in which queries and keys of all ranks meet."""

from collections.abc import Callable
from dataclasses import replace

import torch

from posenc.backends.base import Asked, Backend
from posenc.backends.choice import check_heads
from posenc.backends.specification import AttentionSpecification
from posenc.distributed.cut import Cut
from posenc.distributed.gather import gather
from posenc.distributed.heads import heads
from posenc.distributed.request import SpreadRequest, Way
from posenc.distributed.ring import ring
from posenc.distributed.tokens import Tokens, between

WAYS: dict[str, Callable[[SpreadRequest], Way | str]]
WAYS = {"gather": gather, "heads": heads, "ring": ring}
"""Every way by name; each gives itself, or why it cannot serve."""

UNASKED = ("gather", "heads")
"""A ring computes scores twice more to hold less; who wants that asks for it."""


class ShardedAttention:
    """Attention among the tokens of all ranks, for what one call says of this rank's."""

    def __init__(self, cut: Cut, whole: Tokens, given: AttentionSpecification):
        self.cut, self.whole, self.own = cut, whole, cut.of_rank(cut.rank, whole)
        if whole.positions is not None and given.q_positions is not None:
            # The caller's own tensor, by which kept tables know it.
            self.own = replace(self.own, positions=given.q_positions)
        self.specification = between(self.own, self.own, given)

    def considered(self, asked: Asked) -> tuple[Backend, str]:
        """The way that serves, and why; see ``posenc.attention``."""
        spread = asked.spread
        if spread not in (None, *WAYS):
            raise ValueError(f"spread is {spread!r}; it must be one of {', '.join(WAYS)}, or None.")
        if asked.dropout_p:
            raise ValueError(f"dropout_p is {asked.dropout_p}; each rank would draw other weights.")
        check_heads(asked.scores, asked.sizes.heads, asked.specification.softcap)
        request = SpreadRequest(
            asked.scores, asked.specification, asked.sizes, spread, asked.backend, 0.0, asked.table,
            self.cut, self.whole, self.own,
        )  # fmt: skip
        ways, passed = {}, {}
        for name in UNASKED if spread is None else (spread,):
            made = WAYS[name](request)
            if isinstance(made, str):
                passed[name] = made
            else:
                ways[name] = made
        if not ways:
            raise ValueError(f"The spread {spread!r} cannot serve: {passed[str(spread)]}.")
        chosen, *others = ways.values()
        for way in others:  # a graph knows no min by a key
            chosen = way if way.moves < chosen.moves else chosen
        if torch.compiler.is_compiling():  # nobody reads in a graph
            return chosen, ""
        return chosen, _explained(chosen, ways, passed, asked=spread is not None)


def _explained(chosen: Way, ways: dict[str, Way], passed: dict[str, str], *, asked: bool) -> str:
    why = "it was asked for" if asked else "it moves least" if len(ways) > 1 else "it serves"
    lines = [f"{chosen.name}: {why}; {chosen.what}, {_told(chosen.moves)} to this rank"]
    lines += [f"  {line}" for line in chosen.inner.splitlines()]
    for name, way in ways.items():
        if way is not chosen:
            lines.append(f"  not {name}: {way.what}, {_told(way.moves)}")
    lines += [f"  not {name}: {why}" for name, why in passed.items()]
    if not asked:
        lines.append("  not ring: it computes scores again backward, so it is taken on request")
    return "\n".join(lines)


def _told(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
