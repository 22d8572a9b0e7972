"""A batch of rows cut along their tokens: what each rank holds, and how it comes together again."""

from collections.abc import Sequence
from ctypes import string_at
from hashlib import sha256
from typing import Any, overload

import torch
import torch.distributed as dist
from jaxtyping import Int64
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from posenc.backends.specification import AttentionSpecification
from posenc.distributed.agreement import agree
from posenc.distributed.collectives import everyones, from_first, gathered
from posenc.distributed.dropout import HiddenDropout
from posenc.distributed.groups import device_of, group_of
from posenc.distributed.layouts import NOBODY, Layout, dealt
from posenc.distributed.lengths import from_lengths, length_of
from posenc.distributed.spreading import ShardedAttention
from posenc.distributed.tokens import Tokens, of_values
from posenc.positions import Coordinates, consecutive, in_documents, left_padded, runs


class Shards:
    """Rows of tokens cut among the ranks of a group, so that together they read what none could.

    Every rank builds it with the same arguments, which are those of the *whole* rows; ranks ask
    each other whether they are, and raise one error if not. Rows whose length does not divide are
    padded; padding is seen by nobody, and ``join`` leaves it out.

    Gradients that reach a parameter of one rank are those of its own tokens: their sum over ranks
    is the gradient of the sum of all losses, their mean (as FSDP and DDP form it) that of the mean.

    Args:
        group: A process group, or a mesh of one dimension; all processes if not given.
        length: Number of tokens of a row.
        lengths: Instead: the number of real tokens of each row of the batch, padded to the longest.
        layout: Who holds which token; see ``dealt``. ``"zigzag"`` balances causal attention.
        document_ids: ``[batch, length]``, for packed rows: a new document begins where the id
            changes, and tokens see their own alone.
        padding_mask: ``[batch, length]``: true where a token is real.
        device: Where tokens lie; that of the ids or the mask, or the mesh's, if not given.

    Attributes:
        rank: The number of this rank in the group.
        world: Number of ranks.
        local: Number of tokens that each rank holds, padding included.
        positions: ``[local]`` or ``[batch, local]``: where this rank's tokens stand: each document
            counts from 0, and padding counts for nothing.
        rows: The same, their places in the whole row; 0 at padding.
        document_ids: ``[batch, local]``: documents, numbered along the whole row; or ``None``.
        padding_mask: ``[batch, local]`` or ``[1, local]``: true where a token is real; or ``None``.

    Raises:
        TypeError: An argument is of another kind than said here.
        ValueError: The arguments do not fit each other, or differ among ranks.

    Reference:
        Llama Team 2024, "The Llama 3 Herd of Models", section 3.3.2 (arXiv:2407.21783).

    Example:
        >>> import torch.distributed as dist
        >>> if not dist.is_initialized():
        ...     dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> shards = Shards(length=6, document_ids=torch.tensor([[4, 4, 4, 7, 7, 7]]))
        >>> shards.positions, shards.join(shards.cut(torch.arange(6), dim=0), dim=0)
        (tensor([[0, 1, 2, 0, 1, 2]]), tensor([0, 1, 2, 3, 4, 5]))
    """

    cuts_keys_alone = False

    def __init__(
        self,
        group: dist.ProcessGroup | DeviceMesh | None = None,
        *,
        length: int | None = None,
        lengths: Sequence[int] | Tensor | None = None,
        layout: Layout = "contiguous",
        document_ids: Tensor | None = None,
        padding_mask: Tensor | None = None,
        device: torch.device | str | None = None,
    ):
        self.group, self.device = group_of(group), device_of(group, document_ids, padding_mask)
        if device is not None:
            self.device = torch.device(device)
        self.rank, self.world = self.group.rank(), self.group.size()
        self.layout: Layout = layout
        self._settled: set[Any] = set()
        error: Exception | None = None
        try:
            self._describe(length, lengths, document_ids, padding_mask)
        except (TypeError, ValueError) as raised:
            error = raised
        agree(self._said(error), self.group, "The arguments of Shards", error)

    def _describe(
        self,
        length: int | None,
        lengths: Sequence[int] | Tensor | None,
        document_ids: Tensor | None,
        padding_mask: Tensor | None,
    ) -> None:
        if lengths is not None:
            length, padding_mask = from_lengths(length, lengths, padding_mask)
        self.length = length_of(length, document_ids, padding_mask)
        documents = None if document_ids is None else runs(document_ids.to(self.device))
        # A copy, since whoever gave it may fill it anew for the next batch.
        real = None if padding_mask is None else padding_mask.to(self.device, copy=True)
        rows = consecutive(self.length, device=self.device)
        self.whole = Tokens(rows, _positions(documents, real), documents, real)
        self._in_row = Tokens(rows, None, documents, real)
        held = dealt(self.layout, self.length, self.world, None if documents is None
                     else documents.cpu())  # fmt: skip
        self.local = held.shape[-1]
        self.held = held.to(self.device)
        # Known here, since a graph asks no tensor.
        self._pads = (held == NOBODY).any(-1).any(0).tolist()
        self._order = _inverse(held, self.length).to(self.device)
        self._by_rank = [self.part(self.whole, rank) for rank in range(self.world)]
        own = self._by_rank[self.rank]
        self.rows, self.positions = own.rows, own.places
        self.document_ids, self.padding_mask = own.documents, own.real

    def _said(self, error: Exception | None) -> Any:
        if error is not None:
            return None
        described = [self.whole.documents, self.whole.real]
        digests = [None if t is None else (tuple(t.shape), _digest(t)) for t in described]
        return {
            "length": self.length,
            "layout": self.layout,
            "document_ids": digests[0],
            "padding_mask": digests[1],
        }

    def __repr__(self) -> str:
        return (
            f"Shards(length={self.length}, layout={self.layout!r}, rank={self.rank} of "
            f"{self.world}, local={self.local})"
        )

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

        Raises:
            TypeError: ``dim`` is no whole number.
            ValueError: The axis has another length than the rows.
        """
        if isinstance(whole, Coordinates):
            return whole.with_values(lambda values: self.cut(values, dim))
        dim = self._axis(whole, dim, self.length, "whole")
        held = self._along(self.held[:, self.rank], whole, dim)
        return _taken(whole, held.clamp(min=0), dim).masked_fill(_as(held, whole, dim) < 0, 0)

    def join(self, part: Tensor, dim: int = 1) -> Tensor:
        """The whole tensor again, on every rank, without padding; the inverse of ``cut``.

        Gradients of all ranks add up.

        Args:
            part: This rank's.
            dim: The axis of tokens.

        Raises:
            TypeError: ``dim`` is no whole number.
            ValueError: The axis has another length than this rank's part of the rows.
        """
        dim = self._axis(part, dim, self.local, "part")
        self.settle("join", (tuple(part.shape), str(part.dtype)))
        every = gathered(part, self.group).movedim(0, dim).flatten(dim, dim + 1)
        return self.in_order(every, dim)

    def in_order(self, every: Tensor, dim: int) -> Tensor:
        """The parts of all ranks, one after the other along ``dim``, as whole rows."""
        return _taken(every, self._along(self._order, every, dim), dim)

    def out_of_order(self, whole: Tensor, dim: int) -> Tensor:
        """The inverse: whole rows as the parts of all ranks; padding gets any token's values."""
        held = self._along(self.held.flatten(1), whole, dim)
        return _taken(whole, held.clamp(min=0), dim)

    def _along(self, places: Tensor, x: Tensor, dim: int) -> Tensor:
        """Places for ``x``: one row for all, or one a row of the batch, which is axis 0."""
        if len(places) == 1:
            return places[0]
        if dim == 0 or len(x) != len(places):
            raise ValueError(
                f"The layout {self.layout!r} cuts each of {len(places)} rows by its own documents; "
                f"a tensor of shape {tuple(x.shape)} has no such rows before axis {dim}. Pass "
                f"[batch, ..., tokens, ...]."
            )
        return places

    def _axis(self, x: Tensor, dim: int, expected: int, name: str) -> int:
        if not -x.ndim <= dim < x.ndim or x.shape[dim] != expected:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}; axis {dim} must hold {expected} tokens, as "
                f"{self!r} has it."
            )
        return dim % x.ndim

    # Who holds what -------------------------------------------------------------------------------

    def of_rank(self, rank: int) -> Tokens:
        """Rows, positions, documents and padding of any rank.

        Raises:
            ValueError: There is no such rank.
        """
        if not 0 <= rank < self.world:
            raise ValueError(f"rank is {rank} of {self.world}; it must be one of 0 … world − 1.")
        return self._by_rank[rank]

    def part(self, whole: Tokens, rank: int) -> Tokens:
        """The tokens of one rank, of any description of the whole rows."""
        held = self.held[:, rank]
        places = held.clamp(min=0)
        one = len(held) == 1

        def of(values: Tensor | None, axis: int = -1) -> Tensor | None:
            if values is None:
                return None
            if one:
                return values.index_select(axis, places[0])
            if values.ndim == 1:
                return values[places]
            return _taken(values.expand(len(places), *values.shape[1:]), places, 1)

        real = of(whole.real)
        if self._pads[rank]:
            nobody = held == NOBODY
            real = ~nobody if real is None else real & ~nobody
        grid = whole.positions is not None and whole.positions.ndim > 2
        rows = of(whole.rows)
        assert rows is not None
        documents = of(whole.documents)
        if real is not None and documents is None and not one:
            real = real.expand(len(held), -1)
        positions = of_values(whole.positions, lambda values: _known(of(values, 1 if grid else -1)))
        return Tokens(rows, positions, documents, real)

    @property
    def places(self) -> Int64[Tensor, "local"]:
        """Where this rank's tokens lie in the row; −1 where it holds padding of the cut.

        Raises:
            ValueError: Rows are cut differently.
        """
        if len(self.held) > 1:
            raise ValueError(
                f"The layout {self.layout!r} cuts each row by its own documents. Choose another."
            )
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

    # Attention ------------------------------------------------------------------------------------

    def spreading(self, given: AttentionSpecification) -> ShardedAttention:
        """What ``posenc.attention(..., shards=...)`` asks; see there."""
        self._check(given)
        whole = self._whole(given)
        by_rank = self._by_rank if whole is self.whole else None
        return ShardedAttention(self, whole, given, by_rank)

    def hidden_dropout(self) -> HiddenDropout:
        """Dropout for one pass, by a key that the group's first rank draws from torch's generator.

        Every rank calls it.
        """
        key = torch.randint(2**63 - 1, (1,), device=self.device)
        return HiddenDropout(self.rows, from_first(key, self.group)[0])

    def settle(self, name: str, asked: Any) -> None:
        """Ask all ranks, once for each new thing, whether they are asked for the same."""
        if torch.compiler.is_compiling() or (name, asked) in self._settled:
            return
        agree(asked, self.group, f"The arguments of {name}")
        self._settled.add((name, asked))

    def _whole(self, given: AttentionSpecification) -> Tokens:
        """The whole rows, where the tokens of all ranks stand as ``given`` has it for these."""
        positions = given.q_positions
        known = positions is not None and positions is self.positions
        self.settle("positions", "none" if positions is None else "own" if known else "others")
        if positions is None:
            return self._in_row
        if known:
            return self.whole
        if isinstance(positions, Coordinates):
            self._agree_on_scale(positions)
        axis = 1 if positions.ndim > 2 else positions.ndim - 1

        def together(own: Tensor) -> Tensor:
            every = everyones(own, self.group)
            every = every.movedim(0, axis).flatten(axis, axis + 1)
            if len(self._order) > 1 and every.ndim == 1:
                every = every.expand(len(self._order), -1)
            return self.in_order(every, axis)

        return Tokens(
            self.whole.rows, of_values(positions, together), self.whole.documents, self.whole.real
        )

    def _agree_on_scale(self, positions: Coordinates) -> None:
        """Each step may have another scale, so ranks ask each other at each."""
        if torch.compiler.is_compiling():
            return
        agree(
            str(positions.scale),
            self.group,
            "Positions are Coordinates, cut from others than shards.cut(whole) gives, whose scales",
        )

    def _check(self, given: AttentionSpecification) -> None:
        told = {"document_ids": given.documents, "padding_mask": given.padding_mask,
                "attn_mask": given.attn_mask}  # fmt: skip
        for name, value in told.items():
            if value is not None:
                hint = "" if name == "attn_mask" else f" Tell Shards({name}=...) of whole rows."
                raise ValueError(
                    f"{name} and shards were given; {name} is of one rank alone.{hint}"
                )
        if not given.q_len == given.k_len == self.local:
            raise ValueError(
                f"There are {given.q_len} queries and {given.k_len} keys; {self!r} holds "
                f"{self.local} tokens here. Pass the queries and keys of shards.cut(...)."
            )
        if given.q_positions is not given.k_positions and not torch.equal(
            given.query_places, given.key_places
        ):
            raise ValueError(
                "q_positions and k_positions differ; with shards, queries and keys are the same "
                "tokens. Pass one tensor for both."
            )
        described = self.whole.documents if self.whole.real is None else self.whole.real
        if described is not None and len(described) not in (1, given.batch):
            raise ValueError(
                f"There are {given.batch} rows; {self!r} was told of {len(described)}."
            )
        if given.device is not None and given.device.type != self.device.type:
            raise ValueError(
                f"The tokens lie on {given.device} and {self!r} on {self.device}. Build "
                f"Shards(device={str(given.device)!r})."
            )


def _positions(documents: Tensor | None, real: Tensor | None) -> Tensor | None:
    if documents is not None:
        return in_documents(documents, real)
    return None if real is None else left_padded(real)


def _known(values: Tensor | None) -> Tensor:
    assert values is not None
    return values


def _inverse(held: Tensor, length: int) -> Tensor:
    """Where each token of a row lies in the parts of all ranks, one after the other."""
    every = held.flatten(1)
    # Padding sorts behind all tokens.
    return every.where(every >= 0, length).argsort(dim=1, stable=True)[:, :length]


def _taken(x: Tensor, places: Tensor, dim: int) -> Tensor:
    if places.ndim == 1:
        return x.index_select(dim, places)
    shape = [len(x)] + [1] * (x.ndim - 1)
    shape[dim] = places.shape[1]
    size = list(x.shape)
    size[dim] = places.shape[1]
    return x.gather(dim, places.view(shape).expand(size))


def _as(places: Tensor, x: Tensor, dim: int) -> Tensor:
    """Places with the axes of ``x``, to be compared element by element."""
    shape = [1] * x.ndim
    shape[dim] = places.shape[-1]
    if places.ndim > 1:
        shape[0] = len(places)
    return places.view(shape)


def _digest(values: Tensor) -> str:
    values = values.cpu().contiguous()
    return sha256(string_at(values.data_ptr(), values.nbytes)).hexdigest()[:16]
