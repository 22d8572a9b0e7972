"""SciPy, whose sparse matrices and solvers these encodings use; loaded when they are."""

from typing import Any


def scipy_sparse() -> Any:
    """``scipy.sparse``, with its solvers and its walks over graphs.

    Raises:
        ModuleNotFoundError: SciPy is not installed; it says how to install it.
    """
    try:
        import scipy.sparse
        import scipy.sparse.csgraph
        import scipy.sparse.linalg
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "Encodings of graphs need SciPy, which is not installed. Run: "
            "pip install 'posenc[graphs]'"
        ) from missing
    return scipy.sparse
