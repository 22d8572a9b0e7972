"""True and False are no positions: in no list, array or tensor, alone or among numbers."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from posenc import ALiBi, Learned, Positional, Rotary, Sinusoidal, attention
from posenc.positions import Coordinates, checked, in_documents, mixed_modalities, packed
from posenc.transformer import Encoder, KeyValueCache

SWITCHES = {
    "a list": [True, False],
    "a tuple": (True, False),
    "rows": [[True, False]],
    "an array": np.array([True, False]),
    "objects": np.array([True, False], dtype=object),
    "of numpy": [np.True_, np.False_],
    "a tensor": torch.tensor([True, False]),
}
AMONG_NUMBERS = {
    "first": [True, 2],
    "last": (2, False),
    "in rows": [[0, 1], [2, True]],
    "rows of them": [[True, False], [0, 1]],
    "objects": np.array([2, True], dtype=object),
    "of numpy": [np.True_, 2],
    "tensors": [torch.tensor(2), torch.tensor(True)],
}
X = torch.randn(1, 2, 8)
Q = torch.randn(1, 2, 2, 8)
ROTARY = Positional(queries_keys=Rotary(8))

TAKERS: dict[str, Callable[..., object]] = {
    "checked": checked,
    "coordinates": Coordinates,
    "tokens": lambda given: Sinusoidal(8)(X, given),
    "lookup": Learned(8, 4).table,
    "queries and keys": lambda given: Rotary(8)(Q, Q, given),
    "scores": lambda given: ALiBi(2).table(given, range(2)),
    "attention": lambda given: attention(
        Q, Q, Q, positional=ROTARY, q_positions=given, k_positions=[0, 1]
    ),
    "encoder": lambda given: Encoder(8, 2, 1)(X, given),
    "documents": in_documents,
    "boundaries": lambda given: packed(cu_seqlens=given),
    "lengths": lambda given: packed(lengths=given),
    "times": lambda given: mixed_modalities(
        torch.tensor([[0, 2, 2]]), grids={2: [(2, 1, 1)]}, times={2: [given]}
    ),
}


@pytest.mark.parametrize("takes", TAKERS)
def test_switches_are_refused_alike_at_every_door(takes):
    for given in [*SWITCHES.values(), *AMONG_NUMBERS.values()]:
        with pytest.raises(TypeError, match=r"True|False|bool|values are a Tensor|length is"):
            TAKERS[takes](given)


@pytest.mark.parametrize("given", AMONG_NUMBERS.values(), ids=AMONG_NUMBERS)
def test_those_among_numbers_are_told(given):
    with pytest.raises(TypeError, match="positions hold True or False among numbers, which torch"):
        checked(given)


@pytest.mark.parametrize("given", [{5, 1}, frozenset({1}), {1: 2}, b"ab", "12"], ids=repr)
def test_what_has_no_order_or_no_numbers_is_refused(given):
    with pytest.raises(TypeError, match=f"positions are a {type(given).__name__}; they must be"):
        checked(given)


@pytest.mark.parametrize(
    "given",
    [
        [2, 0],
        (2, 0),
        range(2, -1, -2),
        np.array([2, 0], dtype=np.uint8),
        [np.int64(2), 0],
        [torch.tensor(2), torch.tensor(0)],
        np.array([2, 0], dtype=object),
    ],
    ids=repr,
)
def test_whole_numbers_are_taken_as_before(given):
    assert checked(given).tolist() == [2, 0]


def test_rows_of_a_cache_are_a_mask_or_numbers():
    def filled() -> KeyValueCache:
        cache = KeyValueCache()
        cache.extend(torch.tensor([[0, 1], [5, 6]]), None)
        return cache

    def kept(rows: object) -> Tensor:
        cache = filled()
        cache.reorder(rows)
        return cache.positions

    assert kept([False, True]).tolist() == [[5, 6]]
    assert kept([1, 0]).tolist() == [[5, 6], [0, 1]]
    with pytest.raises(TypeError, match="rows hold True or False among numbers"):
        filled().reorder([True, 0])
