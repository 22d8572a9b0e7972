"""Documents of a packed row, where encodings know them by positions alone."""

from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from posenc._guards import may_look
from posenc.backends.specification import AttentionSpecification
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


def check_scores_know_documents(
    encodings: Sequence[ScoreEncoding], given: AttentionSpecification
) -> None:
    """Refuse documents that scores would take for one, by where the queries and keys stand.

    What sums over the tokens between takes a fall of positions for the end of a document, and stops
    at the position of the query. So where positions run on over a border, all queries before it
    must stand before it, too.

    Args:
        encodings: Those that change the scores.
        given: Where queries and keys stand, and in which documents.

    Raises:
        ValueError: As of ``check_documents_are_told``; or a query would count tokens of the
            document after its own.
    """
    check_documents_are_told(encodings, given.keys, given.documents)
    between = [each for each in encodings if not each.is_pairwise and not _reads_neighbors(each)]
    queries, keys, documents = given.queries, given.keys, given.documents
    if not between or documents is None or given.q_documents is None:
        return
    if not (isinstance(queries, Tensor) and isinstance(keys, Tensor)):
        return  # reals, which they do not take
    if not all(map(may_look, (queries, keys, documents, given.q_documents))) or not given.q_len:
        return
    queries, keys = queries.expand(len(documents), -1), keys.expand(len(documents), -1)
    here, after = keys[:, :-1], keys[:, 1:]
    row, last = ((documents[:, 1:] != documents[:, :-1]) & (after >= here)).nonzero(as_tuple=True)
    mine = given.q_documents[row] == documents[row, last].unsqueeze(-1)
    if given.q_padding_mask is not None:
        mine = mine & given.q_padding_mask[row]
    # What stands where the token before it does is not counted, as padding is not.
    first = after[row, last] + (after == here)[row, last]
    beyond = mine & (queries[row] >= first.unsqueeze(-1))
    if bool(beyond.any()):
        at, query = (int(index) for index in beyond.nonzero()[0])
        raise ValueError(
            f"{type(between[0]).__name__} sums over the tokens between, and knows documents by "
            f"positions that fall. In row {int(row[at])} a query at "
            f"{int(queries[row[at], query])} would count tokens of the next document, which stand "
            f"from {int(after[row[at], last[at]])} on. Pass positions that begin anew, as "
            f"posenc.positions.packed gives them, or each document as a row of its own."
        )


def _reads_neighbors(encoding: nn.Module) -> bool:
    return getattr(encoding, "reads_neighbors", not getattr(encoding, "is_pointwise", True))
