"""Of what lies on the CPU, positions are made there, whatever device torch makes new tensors on."""

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from posenc.interop.huggingface import multimodal_positions
from posenc.positions import (
    Coordinates,
    collate,
    float_distances,
    in_documents,
    kept,
    left_padded,
    masked_grid,
    mixed_modalities,
    on_levels,
    over_padding,
    packed,
    pair_distances,
    prefixed,
)


def cpu(values, **options) -> Tensor:
    return torch.tensor(values, device="cpu", **options)


def fine() -> Coordinates:
    """Rounded to one step."""
    return Coordinates(cpu([0.1, 3600.1], dtype=torch.float64))


def thirds(count: int = 2) -> Coordinates:
    return Coordinates(torch.arange(count, device="cpu"), scale=Fraction(1, 3))


def vision(seconds) -> Tensor:
    types, grids = cpu([[0, 2, 2, 2, 0]]), cpu([[3, 2, 2]])
    config = {"model_type": "qwen2_5_vl"}
    return multimodal_positions(config, types, video_grids=grids, seconds=seconds)


MADE = {
    "rounded": lambda: Coordinates.rounded(cpu([0.2, 0.3, 0.1, 2.5]), Fraction(1, 10)),
    "floats": lambda: Coordinates(cpu([0.5, 0.75])),
    "sums": lambda: fine() + thirds(),
    "order": lambda: fine() < thirds(),
    "cat": lambda: Coordinates.cat([fine(), thirds()]),
    "stack": lambda: Coordinates.stack([thirds(), Coordinates(cpu([0.5, 1.5]))], dim=-1),
    "distances": lambda: pair_distances(cpu([2**63 - 1, 1]), cpu([-2, 5])),
    "float distances": lambda: float_distances(fine(), thirds(), torch.float32),
    "collate": lambda: collate([cpu([1, 2]), cpu([3])], length=4),
    "collate of a share": lambda: collate([cpu([1, 2]), cpu([3])], rank=1, world=2),
    "packed cu_seqlens": lambda: packed(cu_seqlens=cpu([0, 2, 3])),
    "in documents": lambda: in_documents(cpu([5, 5, 7]), cpu([1, 0, 1])),
    "left padded": lambda: left_padded(cpu([[0, 1], [1, 1]]), start=cpu([3, 4])),
    "over padding": lambda: over_padding([2, 3, 4], cpu([1, 0, 1])),
    "masked grid": lambda: masked_grid(cpu([[1, 0]])),
    "prefixed": lambda: prefixed(cpu([[1, 0]]), 2),
    "kept": lambda: kept(cpu([[1, 0], [2, 3]]), cpu([1])),
    "levels": lambda: on_levels([cpu([[1, 0]]), cpu([[2, 0]])]),
    "modalities": lambda: mixed_modalities(
        cpu([[0, 1, 1, 0]]), {1: [(2, 1, 1)]}, times={1: [[0, 5]]}
    ),
    "vision": lambda: vision(None),
    "vision of a tensor": lambda: vision(cpu([0.7], dtype=torch.float64)),
}


def tensors(made) -> list[Tensor]:
    if isinstance(made, Coordinates):
        return [made.values, made.floats()]
    return [made] if isinstance(made, Tensor) else list(made)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_tensors_lies_beside_them(name):
    want = tensors(MADE[name]())
    with torch.device("meta"):
        found = tensors(MADE[name]())
    assert want
    for one, other in zip(found, want, strict=True):
        assert one.device == torch.device("cpu")
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
