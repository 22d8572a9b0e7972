"""One basis of each eigenspace, by a rule that knows no solver.

Eigenvalues closer than a tolerance are one, and their eigenvectors any basis U of one space, of
which the projector P = U Uᵀ alone is certain. The rule picks nodes one after the other:

1. the node i with the largest P_ii, the one nearest to the space;
2. among those equally near, the one with the largest Σ_j (P_ij)³;
3. among those equal in that too, the first by number, as where a symmetry exchanges them.

Its vector is P e_i / √P_ii, positive at i; P loses it, and the next node is picked. Of one vector
the entry of largest magnitude is positive.

The eigenvectors are those of a symmetric matrix. Those of I − D⁻¹ A are D^(−1/2) times such, and
have the signs of these.
"""

import numpy as np

TIES = 1e-6  # of the largest: what is closer is equal
ROWS = 1024  # of a projector that are formed at once


def groups(values: np.ndarray, tolerance: float) -> np.ndarray:
    """The number of each value's group; ascending values within ``tolerance`` are one group."""
    return np.concatenate([[0], np.cumsum(np.diff(values) > tolerance)])[: len(values)]


def signed(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rule for single eigenvectors: these with signs, the nodes that were picked, and P_ii."""
    near = vectors**2
    most = near.max(axis=-2, keepdims=True)
    cubes = vectors**3 * (vectors**3).sum(axis=-2, keepdims=True)
    node = _first(near >= (1 - TIES) * most, cubes, TIES * most**2)
    at = node[..., None, :]
    picked = np.take_along_axis(vectors, at, axis=-2)
    close = np.take_along_axis(near, at, axis=-2)
    return vectors * np.where(picked < 0, -1.0, 1.0), node, close[..., 0, :]


def basis(
    vectors: np.ndarray, most: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rule for one eigenspace with any basis; ``most`` vectors at most, as of ``signed``."""
    rest, made, nodes, nearness = vectors, [], [], []
    for _ in range(vectors.shape[1])[:most]:
        near = (rest**2).sum(axis=1)
        largest = near.max()
        tied = near >= (1 - TIES) * largest
        node = int(_first(tied[:, None], _cubes(rest)[:, None], TIES * largest**2)[0])
        along = rest[node] / np.sqrt(near[node])
        vector = rest @ along
        rest = rest - np.outer(vector, along)
        made.append(vector)
        nodes.append(node)
        nearness.append(near[node])
    return np.stack(made, axis=1), np.array(nodes), np.array(nearness)


def _cubes(vectors: np.ndarray) -> np.ndarray:
    """Σ_j (P_ij)³ of every node i."""
    nodes, width = vectors.shape
    if width**2 <= nodes:
        moments = np.einsum("ja,jb,jc->abc", vectors, vectors, vectors, optimize=True)
        return np.einsum("ia,ib,ic,abc->i", vectors, vectors, vectors, moments, optimize=True)
    # Wide spaces, as that of the leaves of a star, have more moments than there are pairs of nodes.
    parts = (vectors[first : first + ROWS] for first in range(0, nodes, ROWS))
    return np.concatenate([((part @ vectors.T) ** 3).sum(axis=1) for part in parts])


def _first(tied: np.ndarray, cubes: np.ndarray, slack: np.ndarray | float) -> np.ndarray:
    """Of the tied rows the first among those with the largest cubes."""
    cubes = np.where(tied, cubes, -np.inf)
    return (cubes >= cubes.max(axis=-2, keepdims=True) - slack).argmax(axis=-2)
