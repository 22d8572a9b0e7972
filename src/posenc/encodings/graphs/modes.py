"""The first eigenvectors of a sparse Laplacian, with the solvers of SciPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.encodings.graphs.canonical import groups
from posenc.encodings.graphs.graph import scipy_sparse

RESTARTS = 60  # of Lanczos, before a factorization is taken
MORE_RESTARTS = 2000  # where a factorization would fill up
FEW = 20_000  # nodes that are factorized in seconds, however they hang together
BROAD = 16  # of the n² numbers of a factor, so many a one that may not be 0 fills up
SPARE = 4  # eigenvalues that are asked for beyond those that are needed
SHIFT = 1e-6  # of the largest eigenvalue, so that a Laplacian can be factorized


def sparse_modes(
    laplacian: Any, needed: int, tolerance: float, largest: float
) -> tuple[np.ndarray, np.ndarray]:
    """At least ``needed`` smallest eigenvalues of one connected part, and their eigenvectors."""
    solver, wanted = _Solver(laplacian, largest), needed + SPARE
    while wanted < laplacian.shape[0] // 2:
        try:
            values, vectors = _complete(solver, wanted, tolerance)
        except scipy_sparse().linalg.ArpackError:
            break  # a few eigenvalues, met many times, leave Lanczos no vector to go on with
        group = groups(values, tolerance)
        whole = int((group < group[-1]).sum())  # the last group may go on
        if whole >= needed:
            return values[:whole], vectors[:, :whole]
        wanted *= 2
    return np.linalg.eigh(laplacian.toarray())


def _complete(solver: "_Solver", wanted: int, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = solver.smallest(wanted, None)
    while True:
        (value,), vector = solver.smallest(1, vectors)
        if value > values[wanted - 1] - tolerance:
            return values[:wanted], vectors[:, :wanted]
        values, vectors = np.append(values, value), np.hstack([vectors, vector])
        order = np.argsort(values, kind="stable")
        values, vectors = values[order], vectors[:, order]


class _Solver:
    """Lanczos on the Laplacian as it is; on its inverse, once that has taken too long."""

    def __init__(self, laplacian: Any, largest: float):
        self.laplacian, self.largest = laplacian, largest
        self.restarts = MORE_RESTARTS if _fills_up(laplacian) else RESTARTS
        self.solve: Callable[[np.ndarray], np.ndarray] | None = None
        # Any start that no symmetry singles out; the same one at every call.
        self.start = np.random.default_rng(0).standard_normal(laplacian.shape[0])

    def smallest(self, count: int, beside: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The smallest eigenvalues in the space orthogonal to the columns of ``beside``."""
        if self.solve is None:
            try:
                return self._found(self._flipped, count, beside, maxiter=self.restarts)
            except scipy_sparse().linalg.ArpackNoConvergence:
                self.solve = self._factorized()
        return self._found(self.solve, count, beside)

    def _found(
        self,
        apply: Callable[[np.ndarray], np.ndarray],
        count: int,
        beside: np.ndarray | None,
        **options: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the largest eigenvalues of a map that has the same eigenvectors in reverse order."""
        linalg = scipy_sparse().linalg

        def apart(x: np.ndarray) -> np.ndarray:
            return x if beside is None else x - beside @ (beside.T @ x)

        turned = linalg.LinearOperator(
            self.laplacian.shape, matvec=lambda x: apart(apply(apart(x.ravel()))), dtype=np.float64
        )
        _, vectors = linalg.eigsh(
            turned, k=count, which="LA", ncv=max(2 * count + 1, 40), v0=self.start, **options
        )
        values = np.einsum("ij,ij->j", vectors, self.laplacian @ vectors)
        order = np.argsort(values, kind="stable")
        return values[order], vectors[:, order]

    def _flipped(self, x: np.ndarray) -> np.ndarray:
        return self.largest * x - self.laplacian @ x

    def _factorized(self) -> Callable[[np.ndarray], np.ndarray]:
        sparse = scipy_sparse()
        shift = SHIFT * self.largest * sparse.eye_array(self.laplacian.shape[0])
        symmetric = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        return sparse.linalg.splu((self.laplacian + shift).tocsc(), **symmetric).solve


def _fills_up(laplacian: Any) -> bool:
    """Whether a factorization would be dense, by the room that a narrow order of nodes leaves."""
    nodes = laplacian.shape[0]
    if nodes <= FEW:
        return False
    csgraph = scipy_sparse().csgraph
    place = np.empty(nodes, dtype=np.int64)
    place[csgraph.reverse_cuthill_mckee(laplacian.tocsr(), symmetric_mode=True)] = np.arange(nodes)
    edges, rows = laplacian.tocoo(), np.arange(nodes)
    first = rows.copy()
    np.minimum.at(first, place[edges.row], place[edges.col])
    return int((rows - first).sum()) * BROAD > nodes**2
