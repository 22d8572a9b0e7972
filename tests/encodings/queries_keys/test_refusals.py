"""What encodings of queries and keys refuse: odd widths, and tables that would broadcast."""

import pytest
import torch

from posenc import (
    GRAPE,
    AxialForm,
    AxialRotary,
    CayleySTRING,
    ComRoPE,
    CounterRotary,
    DINOv3Rotary,
    DirectedRotary,
    FoPE,
    LieRE,
    LTXRotary,
    MHRoPE,
    MultimodalRotary,
    PoPE,
    QueryTemperature,
    RoPEMixed,
    Rotary,
    StartTokenRotary,
    XPos,
    move_keys,
    rerotate,
)
from posenc.encodings.queries_keys.directions import spiral_vectors
from posenc.frequencies import DynamicNTK, Geometric
from posenc.positions import NOWHERE, consecutive, grid


def content(*shape: int) -> torch.Tensor:
    return torch.ones(1, *shape)


X, POINTS = content(2, 6, 8), grid(2, 3)
FLOAT32 = Rotary(8, arithmetic="float32")

CONSTRUCTORS = [
    (lambda: Rotary(7), "even"),
    (lambda: Rotary(16, head_dim=8), "head_dim is 8"),
    (lambda: Rotary(16, pairing="adjacent"), "pairing"),
    (lambda: Rotary(16, rotated="middle"), "rotated"),
    (lambda: Rotary([1.0, 0.5], base=100), "base"),
    (lambda: Rotary(DynamicNTK(Geometric(8), 2.0, 64)), "at"),
    (lambda: MultimodalRotary(Rotary(128), (16, 24)), "40 pairs"),
    (lambda: MultimodalRotary(Rotary(8), (2, 1, 1), "dealt"), "interleaved"),
    (lambda: MultimodalRotary(Rotary(8), (2, 2, 0)), "section is 0"),
    (lambda: MultimodalRotary(Rotary(8), (2, 1, 1), (0, 1, 2, 2)), "arrangement"),
    (lambda: MultimodalRotary(Rotary(8), (2, 1, 1), (0, 0, 1, 3)), "arrangement"),
    (lambda: MHRoPE(Rotary(8), heads=4), "heads is 4"),
    (lambda: MHRoPE(Rotary(8, head_dim=16)), "8 of 16"),
    (lambda: AxialRotary(6), "multiple of 4"),
    (lambda: AxialRotary(8, form="vit"), "pixtral"),
    (lambda: AxialRotary(8, form="ltx"), "LTXRotary"),
    (lambda: AxialRotary(64, form="flux"), "64 channels"),
    (lambda: AxialRotary(64, split=(32,)), "2 even widths"),
    (lambda: AxialRotary(64, split=(31, 33)), "2 even widths"),
    (lambda: AxialRotary(64, base=(1e4, 100.0, 10.0)), "base"),
    (lambda: AxialRotary(64, stretch=(2.0,)), "stretch"),
    (lambda: AxialRotary(64, base=10.0, schedules=(Geometric(32),) * 2), "schedules"),
    (lambda: AxialRotary(24, form="pixtral", split=(16, 8)), "one width"),
    (lambda: AxialForm("twice", "yy", "", (4, 4)), "order"),
    (lambda: AxialForm("by_axis", "yx", "", (4, 4), by_axis=True, arrangement="interleaved"),
     "by_axis"),
    (lambda: DINOv3Rotary(8, (0, 4)), "height is 0"),
    (lambda: DINOv3Rotary(8, (4, 4), periods=[1.0]), "periods"),
    (lambda: DINOv3Rotary(8, (4, 4), normalize="mean"), "normalize"),
    (lambda: DINOv3Rotary(8, (4, 4), jitter=0.5), "jitter"),
    (lambda: LTXRotary(4, 3, sizes=()), "axes is 0"),
    (lambda: LTXRotary(7, 3), "even"),
    (lambda: RoPEMixed(8, heads=0), "heads is 0"),
    (lambda: RoPEMixed(6, heads=2), "multiple of 4"),
    (lambda: LieRE(8, block=3), "block is 3"),
    (lambda: ComRoPE(16, axes=3, block=4, variant="AP"), "3 axes"),
    (lambda: ComRoPE(8, variant="XY"), "LD"),
    (lambda: CayleySTRING(7), "even"),
    (lambda: DirectedRotary([1.0, 2.0]), "vectors"),
    (lambda: DirectedRotary([[torch.inf, 1.0]]), "finite"),
    (lambda: DirectedRotary.golden_gate(7), "even"),
    (lambda: DirectedRotary.golden_gate(8, 3, spread="angle"), "angle"),
    (lambda: spiral_vectors(8, 4), "directions"),
    (lambda: GRAPE(8, 2, speed=0.0), "speed"),
    (lambda: FoPE(8, 2, 6), "whole turn"),
    (lambda: FoPE(8, 2, 100, slow="ones"), "slow"),
    (lambda: PoPE(8, 2, head_dim=4), "head_dim is 4"),
    (lambda: PoPE(8, 2, phases="normal"), "phases"),
    (lambda: QueryTemperature(8, period=0), "period is 0"),
    (lambda: StartTokenRotary(Rotary(8), Rotary(8, pairing="interleaved"), 4), "pairing"),
    (lambda: StartTokenRotary(Rotary(8), Rotary(6), 4), "head_dim, rotated_dim"),
    (lambda: CounterRotary(8), "Rotary"),
    (lambda: XPos(Rotary(8, arithmetic="vllm")), "arithmetic"),
]  # fmt: skip
CALLS = [
    (lambda: Rotary(16)(X, X), "head_dim is 16"),
    (lambda: Rotary(8).encode_keys(X, Rotary(6).table(range(6))), "8 channels rotate"),
    (lambda: Rotary(8)(X, content(2, 5, 8)), "5 tokens"),
    (lambda: Rotary(8).encode_keys(X, Rotary(8).table([3])), "6 tokens"),
    (lambda: Rotary(8)(X, X, consecutive(6).expand(2, -1)), "batch|broadcast"),
    (lambda: Rotary(8).encode_queries(X, Rotary(8).table(range(6)), out=X.bfloat16()), "out"),
    (lambda: MultimodalRotary(Rotary(8), (2, 1, 1)).table(range(4)), "seq, 3"),
    (lambda: MHRoPE(Rotary(8), 1, (1,))(X, X, grid(6)), "2 heads"),
    (lambda: AxialRotary(8).table(range(4)), "seq, 2"),
    (lambda: AxialRotary(8)(X, X, POINTS[:1]), "6 tokens"),
    (lambda: LieRE(8).table(grid(2, 2, 2)), "seq, 2"),
    (lambda: LieRE(8, heads=1)(X, X, POINTS), "2, 1, 8, 8"),
    (lambda: RoPEMixed(8, 1)(X, X, POINTS), "2, 2, 4"),
    (lambda: GRAPE(8, 1)(X, X), "heads=1"),
    (lambda: FoPE(8, 1, 100)(X, X), "heads=1"),
    (lambda: PoPE(8, 1)(X, X), "heads=1"),
    (lambda: QueryTemperature(8).encode_queries(X, torch.ones(1, 1)), "6, 1"),
    (lambda: QueryTemperature(8).encode_queries(X, torch.ones(2, 6, 1)), "6, 1"),
    (lambda: move_keys(X, [0], range(6), Rotary(8)), "to_positions"),
    (lambda: move_keys(X, POINTS, POINTS[:1], AxialRotary(8)), "to_positions"),
    (lambda: move_keys(X[:, :, :1], [[NOWHERE] * 2], [[0, 0]], AxialRotary(8)), "nowhere"),
    (lambda: move_keys(X, range(6), range(6), XPos(Rotary(8))), "XPos"),
    (lambda: move_keys(X, range(6), range(6), FLOAT32), "float32"),
    (lambda: rerotate(X, range(6), Rotary(8), Rotary(8, pairing="interleaved")), "pairing"),
    (lambda: rerotate(X, range(6), Rotary(8), FLOAT32), "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "noun"), CONSTRUCTORS + CALLS)
def test_it_is_refused(build, noun):
    with pytest.raises((TypeError, ValueError), match=noun):
        build()
