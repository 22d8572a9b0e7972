"""Rows cut along their tokens: who holds which, and how they come together again."""

from dataclasses import replace
from typing import overload

import torch
import torch.distributed as dist
from jaxtyping import Int64
from torch import Tensor

from posenc.distributed.collectives import gathered
from posenc.distributed.layouts import NOBODY, Layout, dealt
from posenc.distributed.tokens import Tokens, of_values
from posenc.positions import Coordinates, consecutive, in_documents, left_padded


class Cut:
    """Rows of ``length`` tokens, cut among the ranks of a group.

    Attributes:
        rank: The number of this rank in the group.
        world: Number of ranks.
        local: Number of tokens that each rank holds, padding included.
        held: ``[rows, world, local]``: the place in the row of each token of each rank; one row
            for all, or one a row of the batch. −1 where a rank holds padding of the cut.
        whole: The tokens of the whole rows.
        in_row: The same, placed by their order in the row alone.
        positions: ``[local]`` or ``[batch, local]``: where this rank's tokens stand: each document
            counts from 0, and padding counts for nothing.
        rows: The same, their places in the whole row; 0 at padding.
        document_ids: ``[batch, local]``: documents, numbered along the whole row; or ``None``.
        padding_mask: ``[batch, local]`` or ``[1, local]``: true where a token is real; or ``None``.
    """

    def __init__(
        self,
        group: dist.ProcessGroup,
        device: torch.device,
        layout: Layout,
        length: int,
        documents: Tensor | None,
        real: Tensor | None,
    ):
        self.group, self.device, self.layout, self.length = group, device, layout, length
        self.rank, self.world = group.rank(), group.size()
        rows = consecutive(length, device=device)
        self.whole = Tokens(rows, _positions(documents, real), documents, real)
        self.in_row = Tokens(rows, None, documents, real)
        held = dealt(layout, length, self.world, None if documents is None else documents.cpu())
        self.local = held.shape[-1]
        self.held = held.to(device)
        # Known here, since a graph asks no tensor.
        self._pads = (held == NOBODY).any(-1).any(0).tolist()
        self._order = _inverse(held, length).to(device)
        self._by_rank = [self._part(self.whole, rank) for rank in range(self.world)]
        own = self._by_rank[self.rank]
        self.rows, self.positions = own.rows, own.places
        self.document_ids, self.padding_mask = own.documents, own.real

    # Cutting and joining --------------------------------------------------------------------------

    @overload
    def cut(self, whole: Coordinates, dim: int = ...) -> Coordinates: ...

    @overload
    def cut(self, whole: Tensor, dim: int = ...) -> Tensor: ...

    def cut(self, whole: Tensor | Coordinates, dim: int = 1) -> Tensor | Coordinates:
        """This rank's part of a whole tensor; zeros where it holds padding.

        Args:
            whole: The same on every rank; coordinates too, which keep their scale.
            dim: The axis of tokens; that of the batch is the first where rows are cut differently.
        """
        if isinstance(whole, Coordinates):
            return whole.with_values(lambda values: self.cut(values, dim))
        dim = _axis(whole, dim, self.length)
        held = self.held[:, self.rank]
        return _taken(whole, held.clamp(min=0), dim).masked_fill(_along(held, whole, dim) < 0, 0)

    def join(self, part: Tensor, dim: int = 1) -> Tensor:
        """The whole tensor again, on every rank, without padding; the inverse of ``cut``.

        Gradients of all ranks add up.

        Args:
            part: This rank's.
            dim: The axis of tokens.
        """
        dim = _axis(part, dim, self.local)
        every = gathered(part, self.group).movedim(0, dim).flatten(dim, dim + 1)
        return self.in_order(every, dim)

    def in_order(self, every: Tensor, dim: int) -> Tensor:
        """The parts of all ranks, one after the other along ``dim``, as whole rows."""
        return _taken(every, self._order, dim)

    def out_of_order(self, whole: Tensor, dim: int) -> Tensor:
        """The inverse: whole rows as the parts of all ranks; padding gets any token's values."""
        return _taken(whole, self.held.flatten(1).clamp(min=0), dim)

    # Who holds what -------------------------------------------------------------------------------

    def of_rank(self, rank: int, whole: Tokens | None = None) -> Tokens:
        """Rows, positions, documents and padding of any rank, or its part of other whole rows."""
        if whole is None or whole is self.whole:
            return self._by_rank[rank]
        return self._part(whole, rank)

    def placed(self, positions: Tensor | Coordinates) -> Tokens:
        """The whole rows, where each rank says where its own tokens stand."""

        def joined(own: Tensor) -> Tensor:
            if own.ndim == 1 and len(self.held) > 1:
                own = own.expand(len(self.held), -1)
            return self.join(own, min(own.ndim - 1, 1))

        return replace(self.whole, positions=of_values(positions, joined))

    def _part(self, whole: Tokens, rank: int) -> Tokens:
        held = self.held[:, rank]
        one, places = len(held) == 1, held.clamp(min=0)

        def of(values: Tensor, axis: int = -1) -> Tensor:
            if not one:
                rows, axis = values if values.ndim > 1 else values.unsqueeze(0), 1
                values = rows.expand(len(held), *rows.shape[1:])
            return _taken(values, places, axis % values.ndim)

        real = None if whole.real is None else of(whole.real)
        documents = None if whole.documents is None else of(whole.documents)
        if self._pads[rank]:
            real = (held != NOBODY) if real is None else real & (held != NOBODY)
        if real is not None and documents is None and not one:
            real = real.expand(len(held), -1)
        grid = whole.positions is not None and whole.positions.ndim > 2
        positions = of_values(whole.positions, lambda values: of(values, 1 if grid else -1))
        return Tokens(of(whole.rows), positions, documents, real)

    @property
    def places(self) -> Int64[Tensor, "local"]:
        """Where this rank's tokens lie in the row; −1 where it holds padding of the cut."""
        if len(self.held) > 1:
            raise ValueError(f"layout is {self.layout!r}, which cuts each row differently.")
        return self.held[0, self.rank]

    @property
    def counts(self) -> list[int]:
        """Number of real tokens of each rank, over all rows that are described."""
        return [int(t.real.sum()) if t.real is not None else t.rows.numel() for t in self._by_rank]

    @property
    def weight(self) -> float:
        """What a rank's mean over its real tokens counts among the means of all ranks.

        Trainers form the mean over ranks. Where ranks hold unequal numbers of real tokens, it is
        the mean over all real tokens only if each rank's is multiplied with this.
        """
        return self.counts[self.rank] * self.world / max(1, sum(self.counts))

    @property
    def cu_seqlens(self) -> Int64[Tensor, "documents_and_one"]:
        """Where the documents of the whole rows begin, all rows side by side, and the last ends."""
        documents = self.whole.documents
        if documents is None:
            rows = 1 if self.whole.real is None else len(self.whole.real)
            return consecutive(rows + 1, device=self.device) * self.length
        begins = torch.ones_like(documents, dtype=torch.bool)
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        first = begins.flatten().nonzero().flatten()
        return torch.cat((first, first.new_tensor([documents.numel()])))


def _positions(documents: Tensor | None, real: Tensor | None) -> Tensor | None:
    if documents is not None:
        return in_documents(documents, real)
    return None if real is None else left_padded(real)


def _inverse(held: Tensor, length: int) -> Tensor:
    """Where each token of a row lies in the parts of all ranks, one after the other."""
    every = held.flatten(1)
    # Padding sorts behind all tokens.
    return every.where(every >= 0, length).argsort(dim=1, stable=True)[:, :length]


def _axis(x: Tensor, dim: int, tokens: int) -> int:
    if x.shape[dim] != tokens:
        raise ValueError(f"A tensor has shape {tuple(x.shape)}; axis {dim} must hold {tokens}.")
    return dim % x.ndim


def _taken(x: Tensor, places: Tensor, dim: int) -> Tensor:
    """``x`` at ``places`` ``[rows, n]`` along ``dim``: one row for all, or one a row of ``x``."""
    if len(places) == 1:
        return x.index_select(dim, places[0])
    size = list(x.shape)
    size[dim] = places.shape[1]
    return x.gather(dim, _along(places, x, dim).expand(size))


def _along(places: Tensor, x: Tensor, dim: int) -> Tensor:
    """Places with the axes of ``x``."""
    shape = [len(places), *[1] * (x.ndim - 1)]
    shape[dim] = places.shape[1]
    return places.view(shape)
