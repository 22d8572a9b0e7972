"""Random rows cut among processes: every way held against the definition."""

import pickle
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.util import Finalize
from typing import Any

import torch
import torch.distributed as dist
from hypothesis import strategies as st
from tests.distributed.ranks import Ranks
from tests.fuzz import attention as whole
from tests.fuzz.blocks import small_blocks
from tests.fuzz.calls import AttentionCase, arguments, cases, content_of, laid_out
from tests.fuzz.definition import expected
from torch import Tensor

from posenc import Positional, attention
from posenc.distributed import Shards

SPREADS = (None, "gather", "heads", "ring")
LAYOUTS = ("contiguous", "zigzag", "striped", "zigzag_by_document")


@dataclass
class Cut:
    """A call of attention whose rows are cut among processes."""

    case: AttentionCase
    world: int
    layout: str


@dataclass
class Asked:
    """What every process is told of one call: all of the rows, so that it takes its part."""

    positional: Positional
    content: list[Tensor]
    real: Tensor | None
    upstream: Tensor
    positions: Tensor | None
    hidden: Tensor | None
    given: dict[str, Any]
    tokens: dict[str, Any]
    small: int
    memory: str


@st.composite
def cuts(draw) -> Cut:
    """One call: queries are the keys' tokens, and no mask is given, which shards do not take.

    Whoever tells shards of padding tells them of all tokens: nothing is asked of padded queries.
    """
    case = draw(cases())
    case = replace(
        case, relation="self", chosen=list(range(case.k_len)), mask="none", as_cu_seqlens=False,
        poisoned=case.padding is not None,
        dtype=draw(st.sampled_from([torch.float64, torch.float64, torch.float32])),
    )  # fmt: skip
    layouts = LAYOUTS if case.documents is not None else LAYOUTS[:3]
    return Cut(case, draw(st.sampled_from([2, 2, 3, 4])), draw(st.sampled_from(layouts)))


@cache
def standing_by() -> Ranks:
    """The processes, until this one ends."""
    ranks = Ranks()
    Finalize(None, ranks.close, exitpriority=10)
    return ranks


def check_cut(cut: Cut) -> None:
    """Raise where what the processes make of a call differs from the definition."""
    case = cut.case
    given = arguments(case)
    content = content_of(case)
    if whole.left_out(case, content, given):
        return
    asked = _asked(cut, content, given)
    answers = _answers(cut.world, layout=cut.layout, told=pickle.dumps(asked))
    want, want_grads = expected(case, content, given)
    for spread, *made in zip(SPREADS, *map(pickle.loads, answers), strict=True):
        if isinstance(made[0], str):
            assert len(set(made)) == 1, f"ranks refuse {spread} in different words: {made}"
            assert spread in ("heads", "ring"), f"{spread} refused {cut}: {made[0]}"
            continue
        out, grads = made[0]
        whole.compare(case, f"{spread} of {cut}", (out, grads), want, want_grads)


def _answers(world: int, **told) -> list[bytes]:
    ranks = standing_by()
    try:
        return ranks.run(world, "tests.fuzz.shards:on_ranks", **told)
    except AssertionError:  # those that wait for one that failed answer nobody else
        ranks.process.kill()
        standing_by.cache_clear()
        raise


def _asked(cut: Cut, content: list[Tensor], given: dict[str, Any]) -> Asked:
    case, more = cut.case, dict(given)
    generator = torch.Generator().manual_seed(case.seed)
    shape = (case.batch, case.heads, case.k_len, case.value_dim)
    upstream = torch.randn(shape, generator=generator, dtype=torch.float64)
    positions = more.pop("k_positions", None)
    more.pop("q_positions", None)
    if positions is not None:
        positions = positions.expand(case.batch, -1)
    names = {"document_ids": "document_ids", "padding_mask": "padding_mask"}
    tokens = {name: more.pop(name) for name in names if name in more}
    more.pop("q_hidden", None)
    return Asked(
        case.positional(),
        [x.detach() for x in content],
        tokens.get("padding_mask") if case.poisoned else None,
        upstream.masked_fill(~case.real_queries[:, None, :, None], 0.0),
        positions,
        more.pop("k_hidden", None),
        {**more, "scale": case.scale},
        {**tokens, "length": case.k_len},
        case.seed,
        case.layout,
    )


def on_ranks(group: dist.ProcessGroup, layout: str, told: bytes) -> bytes:
    """What this process makes of its part by every way; results whole, on each of them."""
    asked = pickle.loads(told)
    shards = Shards(group, layout=layout, **asked.tokens)
    made: list[str | tuple] = []
    for spread in SPREADS:
        try:
            made.append(_spread(asked, shards, spread, group))
        except ValueError as refusal:
            made.append(str(refusal))
    return pickle.dumps(made)


def _spread(asked: Asked, shards: Shards, spread: str | None, group) -> tuple:
    learns = asked.content[0].dtype == torch.float64
    part = [shards.cut(x, dim=2).requires_grad_(learns) for x in asked.content]
    used = part
    if asked.real is not None:
        real = shards.cut(asked.real, dim=1)[:, None, :, None]
        used = [torch.where(real, x, torch.nan) for x in part]
    given = dict(asked.given)
    shared = list(asked.positional.parameters())
    if "sinks" in given:
        given["sinks"] = given["sinks"].detach().requires_grad_(learns)
        shared.insert(0, given["sinks"])
    if asked.positions is not None:
        own = shards.cut(asked.positions, dim=1)
        given |= {"q_positions": own, "k_positions": own}
    if asked.hidden is not None:
        hidden = shards.cut(asked.hidden, dim=1)
        given |= {"q_hidden": hidden, "k_hidden": hidden}
    with small_blocks(asked.small), torch.set_grad_enabled(learns):
        out = attention(*laid_out(used, asked.memory), positional=asked.positional,
                        shards=shards, spread=spread, **given)  # fmt: skip
    joined = shards.join(out.detach(), dim=2)
    if not learns:
        return joined, None
    leaves = [*part, *(x for x in shared if x.requires_grad)]
    upstream = shards.cut(asked.upstream, dim=2)
    found = torch.autograd.grad(out, leaves, upstream, allow_unused=True)
    grads = [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]
    whole_grads = [shards.join(g, dim=2) for g in grads[:3]]
    for g in grads[3:]:
        total = g.contiguous()
        dist.all_reduce(total, group=group)
        whole_grads.append(total)
    return joined, whole_grads
