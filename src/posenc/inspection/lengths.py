"""A stream of document lengths against what a model was trained on."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from posenc.encodings.scores import T5Bias
from posenc.numerics.buckets import between_t5_borders


@dataclass(frozen=True)
class LengthStatistics:
    """What a stream of documents asks of positions."""

    documents: int  #: number of documents
    tokens: int  #: number of tokens
    longest: int  #: tokens of the longest
    beyond: int  #: tokens at positions that training never reached
    documents_beyond: int  #: documents that have such tokens
    #: buckets of a T5 bias that no pair of tokens falls into, which learn nothing from this stream
    buckets_never_met: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Tokens of a document, on average."""
        return self.tokens / max(1, self.documents)


def length_statistics(
    lengths: Iterable[int], *, trained_length: int | None = None, bias: T5Bias | None = None
) -> LengthStatistics:
    """Read a stream of lengths once, in tokens; without ``trained_length`` all were trained.

    Example:
        >>> found = length_statistics([3, 70, 12], trained_length=64, bias=T5Bias(2))
        >>> found.longest, found.beyond, found.documents_beyond, found.buckets_never_met
        (70, 6, 1, (15, 16, 31))
    """
    documents = tokens = longest = beyond = documents_beyond = 0
    for length in lengths:
        documents, tokens, longest = documents + 1, tokens + length, max(longest, length)
        if trained_length is not None and length > trained_length:
            beyond, documents_beyond = beyond + length - trained_length, documents_beyond + 1
    unmet = () if bias is None else _never_met(bias, longest)
    return LengthStatistics(documents, tokens, longest, beyond, documents_beyond, unmet)


def _never_met(bias: T5Bias, longest: int) -> tuple[int, ...]:
    most = min(longest, bias.max_distance + 1)  # farther ones share the last bucket
    distance = torch.arange(1 - most, max(most, 1 - most))
    met = between_t5_borders(distance, bias.borders, bias.bidirectional)
    return tuple(sorted({*range(bias.buckets)} - {*met.tolist()}))
