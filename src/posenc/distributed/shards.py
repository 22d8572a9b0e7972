"""Rows of tokens cut among ranks, as ``attention`` and ``Encoder`` take them."""

from collections.abc import Sequence
from ctypes import string_at
from hashlib import sha256
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from posenc.arguments import check_whole
from posenc.backends.specification import AttentionSpecification
from posenc.distributed.collectives import agree, device_of, from_first, group_of
from posenc.distributed.cut import Cut
from posenc.distributed.dropout import HiddenDropout
from posenc.distributed.layouts import Layout
from posenc.distributed.spreading import ShardedAttention
from posenc.positions import consecutive, runs


class Shards(Cut):
    """Rows of tokens cut among the ranks of a group, for sequences longer than one device holds.

    Every rank builds it with the same arguments, which describe the *whole* rows. If they differ,
    all ranks raise one error; later calls are not compared, and ranks that ask for different things
    may hang. Rows whose length does not divide are padded; padding is masked, and ``join`` removes
    it.

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
        on = torch.device(device or device_of(group, document_ids, padding_mask))
        group, error, said = group_of(group), None, None
        try:
            length, real = described(length, lengths, document_ids, padding_mask)
            documents = None if document_ids is None else runs(document_ids.to(on))
            # A copy, since whoever gave it may fill it anew for the next batch.
            real = None if real is None else real.to(on, copy=True)
            super().__init__(group, on, layout, length, documents, real)
            said = {"length": length, "layout": layout, "document_ids": _digest(documents),
                    "padding_mask": _digest(real)}  # fmt: skip
        except Exception as raised:  # of any kind: the others wait to hear of it
            error = raised
        agree(said, group, "The arguments of Shards", error)

    def __repr__(self) -> str:
        return (
            f"Shards(length={self.length}, layout={self.layout!r}, rank={self.rank} of "
            f"{self.world}, local={self.local})"
        )

    def spreading(self, given: AttentionSpecification) -> ShardedAttention:
        """What ``posenc.attention(..., shards=...)`` asks; see there."""
        for name, value in {"document_ids": given.documents, "padding_mask": given.padding_mask,
                            "attn_mask": given.attn_mask}.items():  # fmt: skip
            if value is not None:
                raise ValueError(f"{name} is of one rank alone; Shards describe whole rows.")
        if not given.q_len == given.k_len == self.local:
            counts = f"{given.q_len} queries and {given.k_len} keys"
            raise ValueError(f"There are {counts}; {self!r} holds {self.local} tokens here.")
        positions = given.q_positions
        if positions is None:
            return ShardedAttention(self, self.in_row, given)
        whole = self.whole if positions is self.positions else self.placed(positions)
        return ShardedAttention(self, whole, given)

    def hidden_dropout(self) -> HiddenDropout:
        """Dropout for one pass, by a key that the group's first rank draws from torch's generator.

        Every rank calls it.
        """
        key = torch.randint(2**63 - 1, (1,), device=self.device)
        return HiddenDropout(self.rows, from_first(key, self.group)[0])


def _digest(values: Tensor | None) -> Any:
    if values is None:
        return None
    held = values.cpu().contiguous()
    return tuple(held.shape), sha256(string_at(held.data_ptr(), held.nbytes)).hexdigest()[:16]


def described(
    length: int | None,
    lengths: Sequence[int] | Tensor | None,
    document_ids: Tensor | None,
    padding_mask: Tensor | None,
) -> tuple[int, Tensor | None]:
    """The length of all rows, and ``[batch, length]``: which tokens are real, if not all."""
    if lengths is not None:
        if padding_mask is not None:
            raise ValueError("lengths and padding_mask were given; both say what is real.")
        counts = torch.as_tensor(lengths)
        length = int(counts.max()) if length is None else length
        if int(counts.min()) < 0 or int(counts.max()) > length:
            raise ValueError(f"lengths are {counts.tolist()}; they must be from 0 to {length}.")
        padding_mask = consecutive(length, device=counts.device) < counts.unsqueeze(-1)
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(f"padding_mask is {padding_mask.dtype}; it must be bool, True if real.")
    for name, told in {"document_ids": document_ids, "padding_mask": padding_mask}.items():
        if told is not None:
            length = told.shape[-1] if length is None else length
            if told.ndim != 2 or told.shape[1] != length:
                shape = tuple(told.shape)
                raise ValueError(f"{name} has shape {shape}; it must be [batch, {length}].")
    check_whole(length=length)
    return length, padding_mask  # type: ignore[return-value]
