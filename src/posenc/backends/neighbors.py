"""Documents of a packed row, and padding, where encodings know them by positions alone."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc._guards import demand, graph_looks, may_look
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding
from posenc.positions import Coordinates

LAST = torch.iinfo(torch.int64).max
NONE = -1e3
"""A number that a mask adds to a score that shall have no weight, or more than it adds."""


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
    encodings: Sequence[ScoreEncoding], given: AttentionSpecification
) -> None:
    """Refuse padding or documents that ``attn_mask`` alone may tell where scores go by the tokens.

    Scores that read neighbors, or sum over the tokens between a query and a key, know of padding
    and documents by positions alone. A key that the mask hides from who sees the next one, or keys
    to both sides, and from all before them who do, is padding, or of another document, or lies
    outside of a window; which of these it is, ``padding_mask`` and ``document_ids`` say.

    Args:
        encodings: Those that change the scores.
        given: Where queries and keys stand, and the mask.

    Raises:
        ValueError: There is such a key, and what it may be was not given.
    """
    mask, at, queries = given.attn_mask, given.keys, given.queries
    padded = given.padding_mask is not None
    # Where that is told, what the mask hides besides is read and counted as any other.
    summing = () if padded else _summing(encodings)
    told = padded and given.documents is not None
    reading = () if told else [each for each in encodings if _reads_neighbors(each)]
    if mask is None or mask.shape[-1] == 1 or not (summing or reading):
        return
    if isinstance(at, Coordinates) or isinstance(queries, Coordinates) or at.ndim > 2:
        return
    counted, read = _hidden_between(given, mask, at, queries)
    for found, taking, words in (
        (
            counted,
            summing,
            "count it between others. Say which keys are padding by padding_mask; where it is "
            "given, what the mask hides is counted.",
        ),
        (
            read,
            reading,
            "read it beside the token after it. Say which keys are padding by padding_mask and "
            "which are one document by document_ids; where both are given, what the mask hides is "
            "read.",
        ),
    ):
        if not taking:
            continue
        words = (
            f"attn_mask hides a key from every query that sees those beside it, and "
            f"{type(taking[0]).__name__} would {words}"
        )
        if graph_looks(found):
            demand(~found.any(), words)
        elif may_look(found) and bool(found.any()):
            raise ValueError(words)


def _hidden_between(
    given: AttentionSpecification, mask: Tensor, at: Tensor, queries: Tensor
) -> tuple[Tensor, Tensor]:
    """Which keys but the first scores would count, and which they would read, though hidden.

    ``[batch, keys - 1]`` each, of what a mask alone may tell of padding and documents.
    """
    padding, documents, q_documents = given.padding_mask, given.documents, given.q_documents
    seen = (mask if mask.dtype == torch.bool else mask > NONE).any(dim=1)
    sees_all = seen.all(dim=-1).unsqueeze(-2)  # as padding does where a mask may hide no whole row
    if documents is not None and q_documents is not None:
        seen = seen & (q_documents.unsqueeze(-1) == documents.unsqueeze(-2))
    not_before, queries = queries.unsqueeze(-1) >= at.unsqueeze(-2), queries.unsqueeze(-1)
    # Who sees keys to both sides of one and it neither, where nobody before saw it beside these:
    # what leaves a window was seen before. A key after the query is not counted, but positions
    # that fall behind it are taken for the end of a document.
    falls = functional.pad(at[..., 1:] < at[..., :-1], (0, 1))
    numbers, earlier = seen.float(), (queries.movedim(-1, -2) < queries) & ~sees_all
    count = numbers.cumsum(-1)
    around = ~seen & (count > 0) & (count < count[..., -1:]) & (not_before | falls.unsqueeze(-2))
    kin = (numbers @ numbers.mT).clamp(max=1) * earlier
    between = (around & (kin @ (numbers * (queries > at.unsqueeze(-2))) == 0)).any(-2)
    # So it is with who sees a key, and not the one before it.
    here = seen[..., 1:] & not_before[..., 1:]
    alone, both = (
        queries.where(behind & (seen[..., :-1] == pair), LAST).amin(-2)
        for behind, pair in ((here, False), (here & ~sees_all.mT, True))
    )
    beside = (alone <= both) & (alone < LAST) & (at[..., 1:] > at[..., :-1])
    if padding is not None:
        between, beside = between & padding, beside & padding[:, :-1] & padding[:, 1:]
    if documents is not None:
        beside = beside & (documents[:, :-1] == documents[:, 1:])
    counted = between[..., 1:] & (at[..., 1:] != at[..., :-1])  # at one position it is known
    return counted, beside | between[..., 1:]


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
    check_documents_are_told(encodings, given.keys, given.documents)
    check_padding_is_outside(encodings, given.keys, given.padding_mask, given.documents)
    check_mask_tells_nothing(encodings, given)
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
