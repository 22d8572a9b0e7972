"""One basis of each eigenspace: the rule by hand, and what it does not depend on."""

import numpy as np
import pytest

from posenc.encodings.graphs.canonical import basis, signed


def turned(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Another basis of the same space."""
    width = vectors.shape[1]
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
    return vectors @ turn


def space(nodes: int, width: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((nodes, width)))[0]


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_basis_does_not_depend_on_the_one_that_was_found(width):
    vectors = space(12, width)
    want = basis(vectors)
    for seed in range(5):
        got = basis(turned(vectors, seed))
        np.testing.assert_allclose(got[0], want[0], atol=1e-12)
        assert np.array_equal(got[1], want[1])


@pytest.mark.parametrize("width", [1, 2, 5, 30])
def test_the_first_picked_are_those_of_the_whole_basis(width):
    vectors = space(40, width)
    whole, nodes, near = basis(vectors)
    made, first, nearness = basis(vectors, 2)
    np.testing.assert_array_equal(made, whole[:, :2])
    np.testing.assert_array_equal(first, nodes[:2])
    np.testing.assert_array_equal(nearness, near[:2])


def test_equal_entries_lean_the_way_of_their_cubes():
    # −2 is as large as 2, twice; the sum of cubes is negative before the sign is turned.
    vector = np.array([2.0, 1.0, -2.0, -2.0, 1.0, 2.0, -1.5])
    vector = vector / np.linalg.norm(vector)
    for order in (slice(None), slice(None, None, -1)):
        made = signed(vector[order][None, :, None])[0][0, :, 0]
        np.testing.assert_allclose(made, -vector[order])
