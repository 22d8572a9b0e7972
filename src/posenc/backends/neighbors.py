"""Documents of a packed row, where encodings know them by positions alone."""

from collections.abc import Iterable

from torch import Tensor, nn

from posenc._guards import may_look
from posenc.encodings.base import ScoreEncoding
from posenc.positions import Coordinates


def check_documents_are_told(
    encodings: Iterable[nn.Module], places: Tensor | Coordinates, documents: Tensor | None
) -> None:
    """Refuse documents across whose borders an encoding would read: its positions run on there.

    An encoding that reads the tokens beside each token says so by ``reads_neighbors``, or, of
    tokens, by ``is_pointwise``. Where nobody can look, nothing is compared.

    Args:
        encodings: Those that are applied.
        places: Where they take the tokens to stand, ``[seq]``, ``[batch, seq]`` or a grid.
        documents: ``[batch, seq]``: tokens with equal numbers are one document.

    Raises:
        ValueError: One of them reads neighbors, and positions do not tell documents apart.

    Example:
        >>> import torch
        >>> from posenc import Convolutional
        >>> ids = torch.tensor([[0, 0, 1, 1]])
        >>> check_documents_are_told([Convolutional(32)], torch.tensor([0, 1, 0, 1]), ids)
        >>> check_documents_are_told([Convolutional(32)], torch.tensor([0, 1, 2, 3]), ids)
        Traceback (most recent call last):
        ...
        ValueError: Convolutional reads the tokens beside each token and knows documents by \
positions that begin anew, and these run on where one begins. Pass positions that fall there, as \
posenc.positions.packed gives them, or each document as a row of its own.
    """
    if documents is None or not may_look(documents) or isinstance(places, Coordinates):
        return  # no encoding that reads neighbors takes reals
    for encoding in encodings:
        if not _reads_neighbors(encoding) or not may_look(places):
            continue
        begins = documents[:, 1:] != documents[:, :-1]
        if places.ndim < 3:
            here, after = places[..., :-1], places[..., 1:]
            falls = isinstance(encoding, ScoreEncoding)
            begins = begins & (after >= here if falls else after == here + 1)
        if bool(begins.any()):
            raise ValueError(
                f"{type(encoding).__name__} reads the tokens beside each token and knows documents "
                f"by positions that begin anew, and these run on where one begins. Pass positions "
                f"that fall there, as posenc.positions.packed gives them, or each document as a "
                f"row of its own."
            )


def _reads_neighbors(encoding: nn.Module) -> bool:
    return getattr(encoding, "reads_neighbors", not getattr(encoding, "is_pointwise", True))
