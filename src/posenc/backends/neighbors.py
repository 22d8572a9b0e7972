"""What encodings must know that read the tokens beside each token, or sum over those between."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding
from posenc.guards import demand, graph_looks, may_look
from posenc.positions import Coordinates


def check_documents_are_told(
    encodings: Iterable[nn.Module], places: Tensor | Coordinates, documents: Tensor | None
) -> None:
    """Refuse documents across whose borders an encoding would read, as positions run on there."""
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
            f"{type(encoding).__name__} reads the tokens beside each token, and positions run on "
            f"where a document begins; they must begin anew there."
        )
        _refuse(begins, words)


def check_padding_is_outside(
    encodings: Iterable[nn.Module],
    places: Tensor | Coordinates,
    real: Tensor | None,
    documents: Tensor | None,
) -> None:
    """Refuse padding that an encoding would read as the neighbor of a token, or read across."""
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
    words = (
        f"{type(reading[0]).__name__} reads the tokens beside each token, and padding lies between "
        f"tokens of one document, or follows one by its position."
    )
    _refuse(inside | beside, words)


def check_mask_tells_nothing(encodings: Iterable[ScoreEncoding], mask: Tensor | None) -> None:
    """Refuse ``attn_mask`` where scores go by the tokens: it does not say why it hides one."""
    for encoding in encodings if mask is not None else ():
        if _reads_neighbors(encoding) or not encoding.is_pairwise:
            raise ValueError(
                f"attn_mask does not tell padding, documents and windows apart, as "
                f"{type(encoding).__name__} must; pass padding_mask and document_ids."
            )


def check_scores_know_documents(
    encodings: Sequence[ScoreEncoding], given: AttentionSpecification
) -> None:
    """Refuse padding and documents that scores which go by the tokens would not know of.

    What sums over the tokens between takes a fall of positions for the end of a document, and stops
    at the position of the query. So where positions run on over a border, all queries before it
    must stand before it, too.
    """
    if given.attn_mask is None and given.padding_mask is None and given.documents is None:
        return
    if given.padding_mask is None or given.documents is None:
        check_mask_tells_nothing(encodings, given.attn_mask)
    check_documents_are_told(encodings, given.keys, given.documents)
    check_padding_is_outside(encodings, given.keys, given.padding_mask, given.documents)
    documents, q_documents = given.documents, given.q_documents
    summing = [e for e in encodings if not e.is_pairwise and not _reads_neighbors(e)]
    if not summing or documents is None or q_documents is None:
        return
    queries, keys = given.queries, given.keys
    if isinstance(queries, Coordinates) or isinstance(keys, Coordinates):
        return  # which they do not take
    here, after = keys[..., :-1], keys[..., 1:]
    runs_on = (documents[:, 1:] != documents[:, :-1]) & (after >= here)
    # What stands where the token before it does is not counted, as padding is not.
    first = (after + (after == here)).unsqueeze(-1)
    counts = (q_documents.unsqueeze(-2) == documents[:, :-1, None]) & runs_on.unsqueeze(-1)
    counts = counts & (queries.unsqueeze(-2) >= first)
    if given.q_padding_mask is not None:
        counts = counts & given.q_padding_mask.unsqueeze(-2)
    words = (
        f"{type(summing[0]).__name__} sums over the tokens between, and a query would count tokens "
        f"of the next document; positions must begin anew where one begins."
    )
    _refuse(counts, words)


def _reads_neighbors(encoding: nn.Module) -> bool:
    return getattr(encoding, "reads_neighbors", not getattr(encoding, "is_pointwise", True))


def _refuse(found: Tensor, words: str) -> None:
    """Raise if one is true; a graph looks when it runs, and accelerators are not looked at."""
    if graph_looks(found):
        demand(~found.any(), words)
    elif found.is_cpu and may_look(found) and bool(found.any()):
        raise ValueError(words)
