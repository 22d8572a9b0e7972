"""What is easily given for numbers, and was read as others: narrow numbers, sets, dictionaries."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from posenc import positions
from posenc.positions import Coordinates

LAYOUTS: dict[str, tuple[Callable[..., Any], tuple[int, ...], dict[str, int]]] = {
    "centers": (positions.centers, (100, 2), {"cell": 90, "start": 100}),
    "collate": (lambda length: positions.collate([[7]] * 120, length=length), (100,), {}),
    "consecutive": (positions.consecutive, (100,), {"start": 100}),
    "decoding": (positions.decoding, (120, 100), {}),
    "diagonal_video": (positions.diagonal_video, (2, 2, 90), {"start": 100, "stride": 100}),
    "grid": (positions.grid, (100, 2), {"start": 100, "stride": 100}),
    "left_padded": (lambda start: positions.left_padded(torch.ones(90).bool(), start=start),
                    (100,), {}),
    "normalized_grid": (positions.normalized_grid, (100, 2), {"low": 0}),
    "normalized_corners": (lambda *sizes: positions.normalized_grid(*sizes, at="corners"),
                           (100, 2), {}),
    "packed": (lambda *lengths: positions.packed(lengths), (100, 100), {}),
    "packed_grids": (lambda *size, **other: positions.packed_grids([size], **other),
                     (10, 9), {"prefix": 10, "length": 120}),
    "prefixed": (lambda count, at: positions.prefixed(positions.grid(1, 1), count, at=at),
                 (100,), {"at": 100}),
    "shard": (positions.shard, (120, 10, 20), {}),
    "symmetric_video": (positions.symmetric_video, (2, 100, 100), {"start": 100}),
}  # fmt: skip
"""Functions whose numbers fit into a byte, while what is made of them does not."""

NARROW = {
    "uint8": np.uint8,
    "int8": np.int8,
    "tensor": lambda number: torch.tensor(number, dtype=torch.uint8),
}


def as_lists(made: Any) -> Any:
    if isinstance(made, tuple):
        return [as_lists(each) for each in made]
    return made.tolist()


@pytest.mark.parametrize("kind", NARROW)
@pytest.mark.parametrize("name", LAYOUTS)
def test_narrow_numbers_are_those_of_python_or_refused(name, kind):
    function, numbers, named = LAYOUTS[name]
    narrow = NARROW[kind]
    wanted = as_lists(function(*numbers, **named))
    made, refusal = None, ""
    try:
        made = function(*map(narrow, numbers), **{key: narrow(each) for key, each in named.items()})
    except (TypeError, ValueError) as error:
        refusal = str(error)
    if refusal:
        assert "must be" in refusal or "give one" in refusal
    else:
        assert as_lists(made) == wanted


def test_a_world_of_many_ranks_counts_its_pieces():
    with pytest.raises(ValueError, match="needs a multiple of 400"):
        positions.shard(144, 10, np.uint8(200), layout="zigzag")  # type: ignore[arg-type]


def test_thirds_of_a_narrow_number_are_exact():
    made = positions.normalized_grid(np.uint8(200), low=0)  # type: ignore[arg-type]
    assert made.tolist()[0] == [Fraction(1, 400)]


TYPES = torch.tensor([0, 1, 1, 1, 1, 1, 1])

UNORDERED: dict[str, Callable[[], Any]] = {
    "packed, a dictionary": lambda: positions.packed({3: 1, 2: 1}),  # type: ignore[arg-type]
    "packed, text": lambda: positions.packed("32"),  # type: ignore[arg-type]
    "packed_grids, a dictionary": lambda: positions.packed_grids({(1, 2): 1}),  # type: ignore[arg-type]
    "packed_grids, a set": lambda: positions.packed_grids([{1, 2}]),  # type: ignore[arg-type]
    "collate, a set": lambda: positions.collate({(1, 2), (3, 4)}),  # type: ignore[arg-type]
    "grids, a set": lambda: positions.mixed_modalities(
        TYPES, {1: {(1, 2, 2), (1, 1, 2)}}  # type: ignore[dict-item]
    ),
    "grids, a dictionary": lambda: positions.mixed_modalities(
        TYPES, {1: {(1, 2, 2): 0, (1, 1, 2): 1}}  # type: ignore[dict-item]
    ),
    "a grid, bytes": lambda: positions.mixed_modalities(
        TYPES, {1: [b"\x01\x02\x03"]}  # type: ignore[list-item]
    ),
    "times, a dictionary": lambda: positions.mixed_modalities(
        TYPES, {1: [(1, 2, 3)]}, times={1: {(4,): "late"}}  # type: ignore[dict-item]
    ),
    "a type, a switch": lambda: positions.mixed_modalities(TYPES, {True: [(1, 2, 3)]}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNORDERED)
def test_what_is_no_list_of_numbers_is_refused(name):
    with pytest.raises(TypeError, match=r"no list|no order|text|codes of letters|whole number"):
        UNORDERED[name]()


def test_grids_of_numpy_are_read():
    mine = positions.mixed_modalities(TYPES, {1: np.array([[1, 2, 3]], dtype=np.uint8)})  # type: ignore[dict-item]
    assert torch.equal(mine, positions.mixed_modalities(TYPES, {1: [(1, 2, 3)]}))


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("rank is 3 of 1", {"rank": 3}),
        ("rank is 0 of 0", {"world": 0}),
        ("layout is 'zigzog'", {"layout": "zigzog"}),
    ],
)
def test_parts_of_one_device_are_looked_at_too(said, given):
    with pytest.raises(ValueError, match=said):
        positions.collate([[1, 2]], **given)


@pytest.mark.parametrize(
    "given",
    [
        {"lengths": torch.tensor([3, 2])},
        {"cu_seqlens": torch.tensor([0, 3, 5])},
        {"document_ids": torch.tensor([3, 3, 2])},
    ],
)
def test_packed_rows_are_made_where_it_is_said(given):
    assert positions.packed(**given, device="meta").device.type == "meta"
    assert positions.packed(**given).device.type == "cpu"


def test_coordinates_of_a_narrow_scale_are_exact():
    assert Coordinates([1], scale=np.uint8(200)).tolist() == [200]  # type: ignore[arg-type]


@pytest.mark.parametrize("mask", [[[True, False]], np.array([[True, False]])])
@pytest.mark.parametrize(
    "build",
    [
        positions.left_padded,
        positions.masked_grid,
        lambda mask: positions.over_padding([[5, 6]], mask),
        lambda mask: positions.in_documents(torch.tensor([[0, 0]]), mask),
        lambda mask: positions.mixed_modalities([[0, 0]], {}, mask=mask),
    ],
)
def test_a_mask_that_is_no_tensor_is_refused_in_words(build, mask):
    with pytest.raises(TypeError, match=r"mask is a .*; it must be a tensor"):
        build(mask)


@pytest.mark.parametrize("ids", [[0, 0, 1, 1], np.array([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1])])
def test_documents_of_modalities_are_taken_as_lists_and_arrays(ids):
    made = positions.mixed_modalities([0, 0, 0, 0], {}, document_ids=ids)
    assert made[:, 0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kind", [1.0, True])
def test_a_type_of_tokens_is_a_whole_number(kind):
    with pytest.raises(TypeError, match=f"A type of times is {kind}; it must be a whole number"):
        positions.mixed_modalities([0, 1, 1], {1: [(2, 1, 1)]}, times={kind: [[0, 5]]})


def test_grids_and_times_are_by_type():
    with pytest.raises(TypeError, match="grids are a list; give a dictionary"):
        positions.mixed_modalities([0, 1, 1], [(2, 1, 1)])
    with pytest.raises(TypeError, match="times are a list; give a dictionary"):
        positions.mixed_modalities([0, 1, 1], {1: [(2, 1, 1)]}, times=[[0, 5]])


MASKED = np.ma.array([0, 1, 2**40], mask=[False, False, True])


def test_an_array_with_a_mask_is_read_where_nothing_is_masked():
    """As the times that netCDF files give."""
    times = np.ma.array([0.5, 2.0], mask=[False, False])
    assert positions.Coordinates(times).tolist() == [Fraction(1, 2), 2]
    assert positions.checked(np.ma.array([3, 5])).tolist() == [3, 5]


@pytest.mark.parametrize("kind", [np.uint8, lambda n: torch.tensor(n, dtype=torch.uint8)])
def test_images_longer_than_a_narrow_length_are_refused(kind):
    with pytest.raises(ValueError, match="4 tokens together, and length is 3"):
        positions.packed_grids([(2, 2)], length=kind(3))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_narrow_points_stand_somewhere(dtype):
    points = torch.tensor([[0, 0], [5, 5], [100, 0]], dtype=dtype)
    assert not positions.placeless(points).any()
