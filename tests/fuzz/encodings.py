"""Encodings to draw from, by the place where they act, each with small random arguments."""

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import nn

from posenc import (
    CABLE,
    DAPE,
    FIRE,
    KERPLE,
    AdditiveGRAPE,
    ALiBi,
    CoPE,
    CounterRotary,
    Cyclic,
    CyclicOffset,
    DAPEv2,
    DeBERTa,
    DualChunk,
    Forgetting,
    Learned,
    LogTemperature,
    PaTH,
    QueryTemperature,
    RelativeLogits,
    ReRoPE,
    Rotary,
    Sandwich,
    SelectiveRoPE,
    SelfExtend,
    Shaw,
    Sinusoidal,
    T5Bias,
    Temperature,
    TransformerXL,
    XPos,
)
from posenc.frequencies import NTK, Geometric, Linear, YaRN

HEAD_DIM = 8
DIM = 12
"""Width of the hidden state, which 1, 2, 3, 4 and 6 heads divide."""
Builder = Callable[[], nn.Module]


def seeded(build: Builder, seed: int) -> nn.Module:
    """A module whose random parameters depend on the seed alone."""
    torch.manual_seed(seed)
    return build()


@st.composite
def rotaries(draw) -> Builder:
    """Rotary encodings of heads of width 8."""
    rotated = draw(st.sampled_from([2, 4, 8]))
    plain = Geometric(rotated, base=draw(st.sampled_from([10.0, 10_000.0, 5e5])))
    schedules = [plain, Linear(plain, 4.0)]
    if rotated > 2:
        schedules += [NTK(plain, 2.0), YaRN(plain, 4.0, trained_length=64)]
    schedule = draw(st.sampled_from(schedules))
    given = {
        "head_dim": HEAD_DIM,
        "pairing": draw(st.sampled_from(["half", "interleaved"])),
        "rotated": draw(st.sampled_from(["prefix", "suffix"])),
    }
    return lambda: Rotary(schedule, **given)


@st.composite
def queries_keys(draw) -> Builder:
    """One encoding of queries and keys."""
    rotary = draw(rotaries())
    kind = draw(st.sampled_from(["rotary", "rotary", "xpos", "temperature", "counter"]))
    if kind == "counter":
        return lambda: CounterRotary(rotary())
    if kind == "xpos":
        return lambda: XPos(rotary(), scale_base=64.0)
    if kind == "temperature":
        return lambda: QueryTemperature(HEAD_DIM, period=3)
    return rotary


def biases(heads: int) -> st.SearchStrategy[Builder]:
    """Encodings that only add a number."""
    return st.sampled_from(
        [
            lambda: ALiBi(heads),
            lambda: ALiBi(heads, slopes="geometric"),
            lambda: T5Bias(heads, 8, 16, std=1.0),
            lambda: T5Bias(heads, 6, 12, bidirectional=False, std=1.0),
            lambda: KERPLE(heads),
            lambda: KERPLE(heads, "power"),
            lambda: Sandwich(heads, dim=8),
            lambda: FIRE(heads, threshold=4.0),
            lambda: ALiBi(heads) + T5Bias(heads, 8, 16, std=1.0),
            lambda: T5Bias(2 * heads, 8, 16, std=1.0)[heads // 2 : heads // 2 + heads],
            lambda: Cyclic(heads, ALiBi(heads), 7),
            lambda: Cyclic(heads, T5Bias(heads, 8, 16, std=1.0), 10),
        ]
    )


def of_content(heads: int, kv_heads: int, dim: int = DIM) -> st.SearchStrategy[Builder]:
    """Encodings that look at queries or keys, or at the hidden state."""
    return st.sampled_from(
        [
            lambda: Shaw(heads, HEAD_DIM, 3, std=1.0),
            lambda: Shaw(heads, HEAD_DIM, 3, values=True, std=1.0),
            lambda: TransformerXL(heads, HEAD_DIM, std=1.0),
            lambda: DeBERTa(heads, HEAD_DIM, 6, 9, std=1.0),
            lambda: Temperature(heads, trained_length=5),
            lambda: CoPE(heads, HEAD_DIM, 4, std=1.0),
            lambda: Forgetting(heads, HEAD_DIM, std=1.0),
            lambda: LogTemperature(heads, floor=5, alpha=0.5),
            lambda: DAPE(heads, ALiBi(heads), 4),
            lambda: DAPE(heads, KERPLE(heads), 3),
            lambda: AdditiveGRAPE(heads, HEAD_DIM, std=1.0),
            lambda: RelativeLogits(heads, dim, width=3, extent=6, std=1.0),
            lambda: CABLE(heads, dim, std=1.0),
            lambda: PaTH(heads, HEAD_DIM, dim, kv_heads, rank=2, std=1.0),
        ]
    )


def of_neighbors(heads: int, dim: int = DIM) -> st.SearchStrategy[Builder]:
    """Encodings that read the tokens beside each token."""
    return st.sampled_from(
        [
            lambda: DAPEv2(heads, ALiBi(heads), 4),
            lambda: DAPEv2(heads, KERPLE(heads), 3, kernel=5),
            lambda: SelectiveRoPE(heads, Rotary(HEAD_DIM, base=10.0), dim, rank=3),
            lambda: SelectiveRoPE(
                heads, Rotary(Geometric(4), head_dim=HEAD_DIM), dim, kernel=2, gate=True, bias=True
            ),
        ]
    )


def remappings() -> st.SearchStrategy:
    """Changes of position for far pairs."""
    return st.sampled_from(
        [
            SelfExtend(group=2, window=3),
            ReRoPE(window=4),
            DualChunk(chunk=6, local=2),
            CyclicOffset(7),
        ]
    )


def tokens(dim: int) -> st.SearchStrategy[Builder]:
    """Encodings that are added to tokens; the learned one has 512 positions."""
    return st.sampled_from(
        [
            lambda: Sinusoidal(dim),
            lambda: Sinusoidal(dim, convention="tensor2tensor", scale="sqrt_dim"),
            lambda: Learned(dim, 512, std=1.0),
        ]
    )
