"""Padding and documents that a mask tells, alone or with others: each token as in a row alone."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import strategies as st
from tests.fuzz.encodings import HEAD_DIM, seeded
from tests.fuzz.tally import TALLY
from torch import Tensor

from posenc import (
    CABLE,
    ALiBi,
    CoPE,
    DAPEv2,
    Forgetting,
    PaTH,
    Positional,
    Rotary,
    ScoreEncoding,
    SelectiveRoPE,
    attention,
)

HEADS = 2
DIM = HEADS * HEAD_DIM

ENCODINGS = {
    "CoPE": lambda: CoPE(HEADS, HEAD_DIM, 8, std=1.0),
    "Forgetting": lambda: Forgetting(HEADS, HEAD_DIM, std=1.0),
    "CABLE": lambda: CABLE(HEADS, DIM, std=1.0),
    "PaTH": lambda: PaTH(HEADS, HEAD_DIM, DIM, HEADS, rank=2, std=1.0),
    "DAPEv2": lambda: DAPEv2(HEADS, ALiBi(HEADS)),
    "SelectiveRoPE": lambda: SelectiveRoPE(HEADS, Rotary(HEAD_DIM), DIM),
}
"""Those that know of padding and documents by positions alone."""

STYLES = ("keys", "square", "itself", "all where nothing", "segments", "all behind", "outer")
"""What rows of padding are shown."""

BOTH = ["padding_mask", "document_ids"]

PLACES = ("none", "row", "within documents", "of real tokens", "0 at padding", "1 at padding")

EXACT = 1e-9
"""Of results in float64."""


@dataclass
class ToldCase:
    """One call of attention, whose ``attn_mask`` hides padding and other documents.

    Attributes:
        real: Which tokens are no padding.
        ids: The document of each token.
        style: What the mask shows to padding.
        lowest: What it adds to hide a key; ``None``: it is boolean.
        placed: Which positions are given.
        q_len: The queries are so many of the last tokens.
        told: Which of ``BOTH`` are given beside it; where one is not, it must be refused.
    """

    seed: int
    name: str
    real: list[bool]
    ids: list[int]
    style: str
    lowest: float | None
    placed: str
    q_len: int
    told: list[str]


@st.composite
def cases(draw) -> ToldCase:
    """One call, of which at least one token is real."""
    seq = draw(st.integers(2, 9))
    ends = st.tuples(st.integers(0, seq - 1), st.integers(0, 3)).map(
        lambda cut: [cut[0] <= i < max(seq - cut[1], cut[0] + 1) for i in range(seq)]
    )
    anywhere = st.lists(st.booleans(), min_size=seq, max_size=seq).filter(any)
    one, some = st.just(0), st.integers(0, 2)
    told = draw(st.sampled_from([BOTH, BOTH, BOTH, BOTH, [], BOTH[:1], BOTH[1:]]))
    return ToldCase(
        seed=draw(st.integers(0, 2**16)),
        name=draw(st.sampled_from(list(ENCODINGS))),
        real=draw(ends | ends | anywhere),
        ids=sorted(draw(st.lists(draw(st.sampled_from([one, some])), min_size=seq, max_size=seq))),
        style=draw(st.sampled_from(STYLES)),
        lowest=draw(st.sampled_from([None, None, float("-inf"), -3.4e38, -1e4])),
        placed=draw(st.sampled_from(PLACES)),
        q_len=seq if draw(st.booleans()) else draw(st.integers(1, seq)),
        told=told,
    )


def check(case: ToldCase) -> None:
    """Raise where what a mask alone may tell is taken, or a real token is not as it is alone."""
    encoding = seeded(ENCODINGS[case.name], case.seed).double()
    generator = torch.Generator().manual_seed(case.seed)
    hidden = torch.randn(len(case.real), DIM, generator=generator, dtype=torch.float64)
    real, ids = torch.tensor(case.real), torch.tensor(case.ids)
    begin = len(real) - case.q_len
    if case.told != BOTH:
        with pytest.raises(ValueError, match="attn_mask does not tell padding"):
            _attended(encoding, hidden, begin, **given(case))
        TALLY.count("must refuse", "what a mask alone tells")
        return
    try:
        made = _attended(encoding, hidden, begin, **given(case))
    except ValueError as refusal:
        if "ositions" not in str(refusal) and "padding" not in str(refusal):
            raise
        TALLY.count("told by masks", "refused")
        return
    for document in ids.unique():
        rows = (real & (ids == document)).nonzero()[:, 0]
        wanted = _attended(encoding, hidden[rows], 0)
        for row, want in zip(rows.tolist(), wanted, strict=True):
            if row >= begin:
                off = (made[row - begin] - want).abs().max()
                assert off < EXACT, f"token {row} is off by {off} in\n{case}"
    TALLY.count("told by masks", case.name)
    TALLY.count("cases", "told by masks")


def given(case: ToldCase) -> dict[str, Tensor]:
    """The mask, positions, and what is told beside them."""
    real, ids, seq = torch.tensor(case.real), torch.tensor(case.ids), len(case.real)
    queries, same = slice(seq - case.q_len, seq), torch.tensor(case.ids)[:, None] == ids
    causal = same & real & torch.ones(seq, seq, dtype=torch.bool).tril()
    shown = {
        "keys": same & real,
        "square": causal,
        "itself": causal | torch.eye(seq).bool(),
        "all where nothing": causal | ~causal.any(-1, keepdim=True),
        "segments": same & (real == real[:, None]),
        "all behind": causal | (same & ~real[:, None]),
        "outer": causal & real[:, None],
    }[case.style]
    mask = shown[queries]
    if case.lowest is not None:
        mask = torch.where(mask, 0.0, case.lowest).double()
    found = {"attn_mask": mask}
    if case.placed != "none":
        places = _places(case)
        found |= {"q_positions": places[queries], "k_positions": places}
    beside = {"padding_mask": real, "document_ids": ids}
    for name in case.told:
        found |= {name: beside[name][None], f"q_{name}": beside[name][None, queries]}
    return found


def _places(case: ToldCase) -> Tensor:
    real, ids = torch.tensor(case.real), torch.tensor(case.ids)
    if case.placed == "row":
        return torch.arange(len(real))
    counted = torch.ones_like(real) if case.placed == "within documents" else real
    mine = (ids[:, None] == ids) & counted & torch.ones(len(ids), len(ids)).tril().bool()
    places = (mine.sum(-1) - 1).clamp(min=0)
    fill = {"0 at padding": 0, "1 at padding": 1}.get(case.placed)
    return places if fill is None else places.masked_fill(~real, fill)


def _attended(encoding: ScoreEncoding, hidden: Tensor, begin: int, **given: Tensor) -> Tensor:
    """Causal attention of the tokens from ``begin`` on, ``[q_len, dim]``."""
    x = hidden.unflatten(-1, (HEADS, HEAD_DIM)).transpose(0, 1)[None]
    read = {}
    if encoding.reads_hidden:
        read = {"q_hidden": hidden[None, begin:], "k_hidden": hidden[None]}
    positional = Positional(scores=encoding)
    made = attention(x[:, :, begin:], x, x, is_causal=True, positional=positional, **read, **given)
    return made[0].transpose(0, 1).flatten(1)
