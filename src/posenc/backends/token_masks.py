"""Padding and documents of queries and keys, one value a token, checked."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.backends.places import Places
from posenc.backends.specification import LAYOUT
from posenc.guards import check_dense, demand, graph_looks, may_look
from posenc.positions import checked, runs


class TokenMasks:
    """Padding and documents of both sides, one value a token; nothing is assumed of queries."""

    def __init__(
        self,
        asked: Places,
        padding_mask: Tensor | None,
        q_padding_mask: Tensor | None,
        document_ids: Tensor | None,
        q_document_ids: Tensor | None,
        cu_seqlens: Tensor | None,
    ):
        self.asked = asked
        self.padding = self._checked_padding("padding_mask", padding_mask, asked.k_len)
        self.q_padding = self._checked_padding("q_padding_mask", q_padding_mask, asked.q_len)
        if cu_seqlens is not None:
            if document_ids is not None:
                raise ValueError(
                    "document_ids and cu_seqlens were given; both say which tokens are one "
                    "document. Pass one of them."
                )
            document_ids = self._ids_between(cu_seqlens)
        self.documents = self._checked_ids("document_ids", document_ids, asked.k_len)
        self.q_documents = self._checked_ids("q_document_ids", q_document_ids, asked.q_len)
        self._join_documents()

    @property
    def of_likely_queries(self) -> Tensor | None:
        """The padding of queries if they are the last of the keys' tokens, which nobody said.

        In cross-attention they are others, and the numbers of each of them count.
        """
        likely = self.q_padding is None and self.asked.queries_are_last
        if self.padding is None or not likely:
            return None
        return self.padding[:, self.asked.k_len - self.asked.q_len :]

    def _join_documents(self) -> None:
        asked = self.asked
        if self.documents is None:
            if self.q_documents is not None:
                raise ValueError(
                    "q_document_ids were given without document_ids. Pass those of the keys too."
                )
            return
        if self.q_documents is not None:
            self._check_ids_are_unique(self.documents)
            return
        if not asked.queries_are_last:
            raise ValueError(
                f"document_ids were given for {asked.k_len} keys, and the {asked.q_len} queries "
                f"are not known to be these tokens or the last of them. Pass q_document_ids too."
            )
        self.documents = runs(self.documents)
        self.q_documents = self.documents[:, asked.k_len - asked.q_len :]

    def _check_ids_are_unique(self, ids: Tensor) -> None:
        """Refuse an id that is used for two documents of one row: which would a query mean?"""
        if not ids.numel():
            return
        begun, distinct = (_changes(row) + 1 for row in (ids, ids.sort(-1).values))
        rule = "With q_document_ids each document needs an id of its own."
        if graph_looks(ids):
            demand((begun == distinct).all(), rule)
        if not may_look(ids):
            return
        for row, documents in enumerate(begun.tolist()):
            if documents != (different := int(distinct[row])):
                raise ValueError(
                    f"Row {row} of document_ids has {documents} documents and {different} ids. "
                    f"{rule}"
                )

    def _checked_padding(self, name: str, mask: Tensor | None, seq: int) -> Tensor | None:
        if mask is None:
            return None
        check_padding(name, mask)
        self._check_shape(name, mask, seq)
        return mask

    def _checked_ids(self, name: str, ids: Tensor | None, seq: int) -> Tensor | None:
        if ids is None:
            return None
        ids = checked(ids, name)
        self._check_shape(name, ids, seq)
        return ids

    def _check_shape(self, name: str, given: Tensor, seq: int) -> None:
        batch = self.asked.batch
        if tuple(given.shape) != (batch, seq):
            side = "keys" if seq == self.asked.k_len and not name.startswith("q_") else "queries"
            raise ValueError(
                f"{name} has shape {tuple(given.shape)}; there are {batch} rows of {seq} {side}, "
                f"read as {LAYOUT}. Pass one value a token, [{batch}, {seq}]."
            )

    def _ids_between(self, cu_seqlens: Tensor) -> Tensor:
        ends, k_len = checked(cu_seqlens, "cu_seqlens"), self.asked.k_len
        if ends.ndim != 1 or not len(ends) or (may_look(ends) and not _is_partition(ends, k_len)):
            told = ends.tolist() if may_look(ends) else tuple(ends.shape)
            raise ValueError(
                f"cu_seqlens is {told}; it must be one row that begins at 0, never falls, and ends "
                f"at the {k_len} keys."
            )
        if graph_looks(ends):
            rule = "cu_seqlens must begin at 0, never fall, and end at the number of keys."
            demand(_is_partition(ends, k_len), rule)
        tokens = torch.arange(k_len, device=ends.device)
        row = torch.bucketize(tokens, ends[1:].contiguous(), right=True)
        return row.expand(self.asked.batch, -1)


def check_padding(name: str, mask: Tensor) -> None:
    """Refuse what does not say which tokens are real.

    Raises:
        TypeError: It is no tensor, or not boolean.

    Example:
        >>> check_padding("padding_mask", [[True, False]])
        Traceback (most recent call last):
        ...
        TypeError: padding_mask is a list; it must be a tensor, bool [batch, seq], True where a \
token is real. Pass torch.as_tensor(padding_mask).
    """
    if not isinstance(mask, Tensor):
        raise TypeError(
            f"{name} is a {type(mask).__name__}; it must be a tensor, bool [batch, seq], True "
            f"where a token is real. Pass torch.as_tensor({name})."
        )
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} is {mask.dtype}; it must be bool [batch, seq], True where a token is real. "
            f"For a mask of ones and zeros pass mask.bool(); for one that is True at padding, as "
            f"torch.nn's key_padding_mask, pass ~mask."
        )
    check_dense(**{name: mask})


def _changes(ids: Tensor) -> Int64[Tensor, " batch"]:
    return (ids.diff(dim=-1) != 0).sum(-1)


def _is_partition(ends: Tensor, length: int) -> Bool[Tensor, ""]:
    return (ends[0] == 0) & (ends[-1] == length) & (ends[1:] >= ends[:-1]).all()
