"""Images of patches in a padded batch, in any order: each as it would come out alone."""

from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st
from tests.fuzz.encodings import Builder, seeded

from posenc import (
    PEG,
    AxialLearned,
    AxialRotary,
    AxialSinusoidal,
    LearnedGrid,
    Positional,
    SwinBias,
)
from posenc.positions import grid, prefixed
from posenc.transformer import Encoder

DIM, HEADS, SIDE = 16, 2, 4
HEAD_DIM = DIM // HEADS
EXACT = 1e-9
"""Of results in float64."""

TOKENS: dict[str, Builder] = {
    "sines": lambda: AxialSinusoidal(DIM),
    "grid": lambda: LearnedGrid(DIM, (SIDE, SIDE), std=1.0),
    "axes": lambda: AxialLearned(DIM, (SIDE, SIDE), std=1.0),
    "peg": lambda: PEG(DIM),
    "wide peg": lambda: PEG(DIM, 5),
}
ROTATIONS: dict[str, Builder] = {"rotary": lambda: AxialRotary(HEAD_DIM)}
SCORES: dict[str, Builder] = {"swin": lambda: SwinBias(HEADS, SIDE, std=1.0)}


@dataclass
class Batch:
    """A batch of images.

    Attributes:
        sizes: Height and width of each.
        order: How the points of the whole grid are shuffled, alike in all rows.
        registers: Tokens before each image that stand nowhere.
        left: What padding holds.
    """

    seed: int
    sizes: list[tuple[int, int]]
    order: list[int] = field(repr=False)
    registers: int
    tokens: list[str]
    rotations: list[str]
    scores: list[str]
    norm: str
    embedding_norm: bool
    staged: bool
    left: float


@st.composite
def batches(draw) -> Batch:
    """One batch; registers stand only where each encoding takes tokens that stand nowhere."""
    sides = st.integers(1, SIDE)
    tokens = draw(st.lists(st.sampled_from(list(TOKENS)), max_size=3))
    scores = draw(st.lists(st.sampled_from(list(SCORES)), max_size=1))
    registers = 0 if scores or "grid" in tokens else draw(st.integers(0, 2))
    return Batch(
        seed=draw(st.integers(0, 2**16)),
        sizes=draw(st.lists(st.tuples(sides, sides), min_size=1, max_size=3)),
        order=draw(st.permutations(range(SIDE**2))),
        registers=registers,
        tokens=tokens,
        rotations=draw(st.lists(st.sampled_from(list(ROTATIONS)), max_size=1)),
        scores=scores,
        norm=draw(st.sampled_from(["pre", "post"])),
        embedding_norm=draw(st.booleans()),
        staged=draw(st.booleans()),
        left=draw(st.sampled_from([0.0, 1e3, float("nan")])),
    )


def check(case: Batch) -> None:
    """Raise where an image comes out otherwise than alone."""
    encodings = tuple(
        [seeded(known[name], case.seed + i) for i, name in enumerate(names)]
        for known, names in (
            (TOKENS, case.tokens), (ROTATIONS, case.rotations), (SCORES, case.scores),
        )
    )  # fmt: skip
    torch.manual_seed(case.seed)
    encoder = Encoder(
        DIM, HEADS, 1, inner=DIM, norm=case.norm, embedding_norm=case.embedding_norm,
        positional=Positional(*encodings),
    ).double().eval()  # fmt: skip
    points = grid(SIDE, SIDE)[torch.tensor(case.order)]
    x = torch.randn(len(case.sizes), case.registers + len(points), DIM, dtype=torch.float64)
    real = torch.stack([(points < torch.tensor(size)).all(-1) for size in case.sizes])
    real = torch.nn.functional.pad(real, (case.registers, 0), value=True)
    places = (prefixed(points, case.registers) if case.registers else points)[None]
    padded = x.masked_fill(~real.unsqueeze(-1), case.left)
    with torch.no_grad():
        if case.staged:
            out = encoder.stages(padded, places, padding_mask=real).output
        else:
            out = encoder(padded, places, padding_mask=real)
        for row, kept in enumerate(real):
            alone = encoder(x[row : row + 1, kept], places[:, kept])[0]
            off = (out[row, kept] - alone).abs().max().item()
            assert off <= EXACT * (1 + alone.abs().max().item()), f"off by {off} in\n{case}"
