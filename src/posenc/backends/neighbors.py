"""Documents of a packed row, and padding, where encodings know them by positions alone."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding
from posenc.guards import demand, graph_looks, may_look
from posenc.positions import Coordinates

SAY_BOTH = (
    "Pass padding_mask and document_ids with it (all true where nothing is padding, all 0 where "
    "there is one document); or say order by is_causal and a window by window, without attn_mask."
)


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
    if documents is None or isinstance(places, Coordinates):
        return  # no encoding that reads neighbors takes reals
    for encoding in encodings:
        if not _reads_neighbors(encoding):
            continue
        begins = documents[:, 1:] != documents[:, :-1]
        if places.ndim < 3:
            here, after = places[..., :-1], places[..., 1:]
            falls = isinstance(encoding, ScoreEncoding)
            begins = begins & (after > here if falls else after == here + 1)
        words = (
            f"{type(encoding).__name__} reads the tokens beside each token and knows documents by "
            f"positions that begin anew, and these run on where one begins. Pass positions that "
            f"fall there, as posenc.positions.packed gives them, or each document as a row of its "
            f"own."
        )
        if graph_looks(documents, places):
            demand(~begins.any(), words)
        elif may_look(begins) and bool(begins.any()):
            raise ValueError(words)


def check_padding_is_outside(
    encodings: Iterable[nn.Module],
    places: Tensor | Coordinates,
    real: Tensor | None,
    documents: Tensor | None,
) -> None:
    """Refuse padding between tokens that an encoding would read as neighbors, as it is told.

    On a grid whoever stands at the next point is the neighbor, whatever lies between in the row.

    Args:
        encodings: Those that are applied.
        places: Where they take the tokens to stand.
        real: ``[batch, seq]``: which tokens are no padding; ``None``: all.
        documents: ``[batch, seq]``: tokens with equal numbers are one document.

    Raises:
        ValueError: One of them reads neighbors, and padding lies between two tokens of a document
            whose positions follow one another, or beside a token at a position that follows its.

    Example:
        >>> import torch
        >>> from posenc import Convolutional
        >>> real = torch.tensor([[True, True, False, True]])
        >>> check_padding_is_outside([Convolutional(32)], torch.tensor([0, 1, 1, 2]), real, None)
        Traceback (most recent call last):
        ...
        ValueError: Convolutional reads the tokens beside each token, and padding lies between \
tokens of one document. Pad rows at their ends.
    """
    reading = [each for each in encodings if _reads_neighbors(each)]
    if real is None or not reading or isinstance(places, Coordinates) or places.ndim > 2:
        return
    index = torch.arange(real.shape[-1], device=real.device)
    last = torch.where(real, index, -1).cummax(-1).values[:, :-1]  # real token before the next one
    at = places.expand(real.shape)
    before, after = at.gather(-1, last.clamp(min=0)), at[:, 1:]
    rises = any(isinstance(each, ScoreEncoding) for each in reading)
    follows = after > before if rises else after == before + 1
    inside = real[:, 1:] & (last >= 0) & (last < index[:-1]) & follows
    # Scores read what stands beside a token; padding in an earlier pass knew not where it would be.
    beside = rises & (real[:, 1:] != real[:, :-1]) & (at[:, 1:] > at[:, :-1])
    if documents is not None:
        inside = inside & (documents.gather(-1, last.clamp(min=0)) == documents[:, 1:])
        beside = beside & (documents[:, :-1] == documents[:, 1:])
    reads = f"{type(reading[0]).__name__} reads the tokens beside each token, and padding"
    for found, words in (
        (inside, f"{reads} lies between tokens of one document. Pad rows at their ends."),
        (
            beside,
            f"{reads} stands beside a token at a position that follows it, as if it were the next. "
            f"Leave positions out, or give padding the position of the token beside it.",
        ),
    ):
        if graph_looks(found):
            demand(~found.any(), words)
        elif may_look(found) and bool(found.any()):
            raise ValueError(words)


def check_mask_tells_nothing(
    encodings: Iterable[ScoreEncoding], mask: Tensor | None, remedy: str
) -> None:
    """Refuse ``attn_mask`` beside scores that go by the tokens, since it does not say why it hides.

    Scores that read neighbors, or sum over the tokens between a query and a key, leave out padding
    and other documents, and read and count what lies outside of a window. A mask hides keys of each
    kind alike, so nothing is taken from it.

    Args:
        encodings: Those that change the scores.
        mask: What is added to scores, or shows keys.
        remedy: What the caller can do.

    Raises:
        ValueError: There are such an encoding and a mask.

    Example:
        >>> import torch
        >>> from posenc import Forgetting
        >>> mask = torch.ones(3, 3).bool().tril()
        >>> check_mask_tells_nothing([Forgetting(2, 8)], mask, "Say order by is_causal.")
        Traceback (most recent call last):
        ...
        ValueError: attn_mask is given, and Forgetting goes by the tokens between: a mask does not \
say whether a key that it hides is padding, of another document, or counts. Say order by is_causal.
    """
    for encoding in encodings if mask is not None else ():
        reads = _reads_neighbors(encoding)
        if reads or not encoding.is_pairwise:
            raise ValueError(
                f"attn_mask is given, and {type(encoding).__name__} goes by the tokens "
                f"{'before each' if reads else 'between'}: a mask does not say whether a key that "
                f"it hides is padding, of another document, or counts. {remedy}"
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
        ValueError: As of the checks above; or a query would count tokens of the
            document after its own.
    """
    if given.padding_mask is None or given.documents is None:
        check_mask_tells_nothing(encodings, given.attn_mask, SAY_BOTH)
    check_documents_are_told(encodings, given.keys, given.documents)
    check_padding_is_outside(encodings, given.keys, given.padding_mask, given.documents)
    between = _summing(encodings)
    queries, keys = given.queries, given.keys
    documents, q_documents = given.documents, given.q_documents
    if not between or documents is None or q_documents is None:
        return
    if not (isinstance(queries, Tensor) and isinstance(keys, Tensor)):
        return  # reals, which they do not take
    queries, keys = queries.expand(len(documents), -1), keys.expand(len(documents), -1)
    runs_on = (documents[:, 1:] != documents[:, :-1]) & (keys[:, 1:] >= keys[:, :-1])

    def counting(row: Tensor, last: Tensor) -> Tensor:
        """Which queries of the document that ends at ``last`` would count tokens after it."""
        mine = q_documents[row] == documents[row, last].unsqueeze(-1)
        if given.q_padding_mask is not None:
            mine = mine & given.q_padding_mask[row]
        # What stands where the token before it does is not counted, as padding is not.
        here, after = keys[row, last], keys[row, last + 1]
        return mine & (queries[row] >= (after + (after == here)).unsqueeze(-1))

    known_by = (
        f"{type(between[0]).__name__} sums over the tokens between, and knows documents by "
        f"positions that fall."
    )
    pass_others = (
        "Pass positions that begin anew, as posenc.positions.packed gives them, or each document "
        "as a row of its own."
    )
    read = queries, keys, documents, q_documents
    if graph_looks(*read):
        rows = torch.arange(len(documents), device=documents.device).unsqueeze(-1)
        borders = torch.arange(runs_on.shape[-1], device=documents.device)
        astray = (counting(rows, borders) & runs_on.unsqueeze(-1)).any()
        demand(
            ~astray, f"{known_by} A query would count tokens of the next document. {pass_others}"
        )
    if not all(map(may_look, read)) or not given.q_len:
        return
    row, last = runs_on.nonzero(as_tuple=True)
    if bool((beyond := counting(row, last)).any()):
        at, query = (int(index) for index in beyond.nonzero()[0])
        raise ValueError(
            f"{known_by} In row {int(row[at])} a query at {int(queries[row[at], query])} would "
            f"count tokens of the next document, which stand from "
            f"{int(keys[row[at], last[at] + 1])} on. {pass_others}"
        )


def _reads_neighbors(encoding: nn.Module) -> bool:
    return getattr(encoding, "reads_neighbors", not getattr(encoding, "is_pointwise", True))


def _summing(encodings: Iterable[ScoreEncoding]) -> list[ScoreEncoding]:
    """Those that sum over the tokens between."""
    return [each for each in encodings if not each.is_pairwise and not _reads_neighbors(each)]
