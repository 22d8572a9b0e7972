"""Of what lies on the CPU, positions are made there, whatever device torch makes new tensors on."""

from collections.abc import Iterator
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
    in_float64,
    kept,
    left_padded,
    masked_grid,
    mixed_modalities,
    on_levels,
    over_padding,
    packed,
    pair_distances,
    prefixed,
    unshard,
)


def cpu(values, **options) -> Tensor:
    return torch.tensor(values, device="cpu", **options)


def fine() -> Coordinates:
    """Rounded to one step."""
    return Coordinates(cpu([0.1, 3600.1], dtype=torch.float64))


def thirds(count: int = 2) -> Coordinates:
    return Coordinates(torch.arange(count, device="cpu"), scale=Fraction(1, 3))


def vision(seconds, family: str = "qwen2_5_vl") -> Tensor:
    types = cpu([[0, 2, 2, 2, 0]])
    grids = cpu([[3, 2, 2]])
    return multimodal_positions({"model_type": family}, types, video_grids=grids, seconds=seconds)


MADE = {
    "rounded": lambda: Coordinates.rounded(cpu([0.2, 0.3, 0.1, 2.5]), Fraction(1, 10)),
    "rounded at once": lambda: Coordinates.rounded(cpu([2.0, 2.5, 1.25, 0.75]), Fraction(1, 2)),
    "floats": lambda: Coordinates(cpu([0.5, 0.75])),
    "long floats": fine,
    "floats of many": lambda: thirds(20_000).floats(),
    "sums": lambda: fine() + thirds(),
    "sums with fractions": lambda: thirds() + Fraction(1, 7),
    "differences": lambda: fine().differences(thirds()),
    "order": lambda: fine() < thirds(),
    "cat": lambda: Coordinates.cat([fine(), thirds()]),
    "far cat": lambda: Coordinates.cat(
        [Coordinates(cpu([2**61]), scale=3), Coordinates(cpu([1]), scale=Fraction(1, 7))]
    ),
    "stack": lambda: Coordinates.stack([thirds(), Coordinates(cpu([0.5, 1.5]))], dim=-1),
    "no times": lambda: fine() * 0,
    "finer": lambda: Coordinates(cpu([0.5, 3.0])).with_scale(Fraction(1, 4)),
    "in float64": lambda: in_float64(thirds()),
    "distances": lambda: pair_distances(cpu([2**63 - 1, 1]), cpu([-2, 5])),
    "distances to a list": lambda: pair_distances(cpu([3]), [1, 2]),
    "distances of a list": lambda: float_distances([1, 2], thirds(), torch.float32),
    "float distances": lambda: float_distances(fine(), thirds(), torch.float32),
    "many float distances": lambda: float_distances(thirds(600), thirds(600), torch.float32),
    "collate": lambda: collate([cpu([1, 2]), cpu([3])], length=4),
    "collate of full rows": lambda: collate([cpu([1, 2]), cpu([3, 4])], length=4),
    "collate of int32": lambda: collate([cpu([1, 2], dtype=torch.int32), cpu([3])], length=3),
    "collate of a share": lambda: collate([cpu([1, 2]), cpu([3])], rank=1, world=2),
    "packed lengths": lambda: packed(cpu([2, 3])),
    "packed cu_seqlens": lambda: packed(cu_seqlens=cpu([0, 2, 3])),
    "packed document_ids": lambda: packed(document_ids=cpu([5, 5, 7])),
    "in documents": lambda: in_documents(cpu([5, 5, 7]), cpu([1, 0, 1])),
    "a list in documents": lambda: in_documents([5, 5, 7], cpu([1, 0, 1])),
    "left padded": lambda: left_padded(cpu([[0, 1], [1, 1]]), start=cpu([3, 4])),
    "over padding": lambda: over_padding([2, 3, 4], cpu([1, 0, 1])),
    "unshard": lambda: unshard([cpu([0]), cpu([1])]),
    "masked grid": lambda: masked_grid(cpu([[1, 0]])),
    "prefixed": lambda: prefixed(cpu([[1, 0]]), 2),
    "prefixed at a place": lambda: prefixed(cpu([[1, 0]]), 2, at=(3, 4)),
    "kept": lambda: kept(cpu([[1, 0], [2, 3]]), cpu([1])),
    "kept by a list": lambda: kept(cpu([[1, 0], [2, 3]]), [1]),
    "levels": lambda: on_levels([cpu([[1, 0]]), cpu([[2, 0]])]),
    "modalities": lambda: mixed_modalities(
        cpu([[0, 1, 1, 0]]), {1: [(2, 1, 1)]}, times={1: [[0, 5]]}
    ),
    "vision": lambda: vision(None),
    "vision of a list": lambda: vision([0.7]),
    "vision of a tensor": lambda: vision(cpu([0.7], dtype=torch.float64)),
    "vision of omni": lambda: vision(cpu([0.7]), "qwen2_5_omni"),
    "vision of omni by a list": lambda: vision([0.7], "qwen2_5_omni"),
}


def tensors(made: object) -> Iterator[Tensor]:
    if isinstance(made, Coordinates):
        yield made.values
        made = made.floats()
    if isinstance(made, Tensor):
        yield made
    else:
        for each in made:  # type: ignore[attr-defined]
            yield from tensors(each)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_tensors_lies_beside_them(name):
    want = list(tensors(MADE[name]()))
    with torch.device("meta"):
        found = list(tensors(MADE[name]()))
    assert want
    for one, other in zip(found, want, strict=True):
        assert one.device == torch.device("cpu")
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.parametrize("documents", [[[1, 2], [3, 4]], [[1, 2], [3]]], ids=["full", "padded"])
def test_rows_of_lists_are_all_made_where_new_tensors_are(documents):
    with torch.device("meta"):
        assert {each.device.type for each in collate(documents, length=4)} == {"meta"}
