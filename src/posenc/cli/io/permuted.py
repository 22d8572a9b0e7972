"""A checkpoint written again with some rows in other places, a few heads at a time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

from posenc.cli.errors import UserError
from posenc.inspection.safetensors_header import PACKED, Entry, Header

if TYPE_CHECKING:
    from posenc.interop.weights import RowOrder
    from posenc.numerics.pairing import Pairing

CHUNK = 1 << 20
"""Bytes that are copied at once."""


def write_permuted(
    source: BinaryIO,
    target: BinaryIO,
    header: Header,
    told: Header,
    orders: "Mapping[str, RowOrder]",
    to: "Pairing",
) -> None:
    """Writes ``told`` and then every tensor of ``source``, permuted where it has an order.

    Only one group of heads is in memory: where queries, keys and values are one projection, that
    is one tensor at the most.

    Args:
        source: The file that ``header`` was read from.
        target: A file at its beginning.
        header: Of ``source``.
        told: The header to write; its tensors lie where they did.
        orders: By name of the tensor.
        to: The pairing.

    Raises:
        UserError: A tensor to permute is packed.
    """
    target.write(told.encoded())
    begin = target.tell()
    for name, each in sorted(header.entries.items(), key=lambda item: item[1].begin):
        source.seek(header.start + each.begin)
        target.seek(begin + each.begin)
        if name in orders:
            _permute(source, target, name, each, orders[name], to)
        else:
            _copy(source, target, each.end - each.begin)
    target.seek(begin + header.bytes)


def _permute(
    source: BinaryIO,
    target: BinaryIO,
    name: str,
    each: Entry,
    order: "RowOrder",
    to: "Pairing",
) -> None:
    import torch

    rows, size = order.rows(each.shape), each.end - each.begin
    if each.dtype in PACKED or size % rows:
        raise UserError(
            f"{name} has dtype {each.dtype}, in which rows are packed; convert the weights that "
            f"it was made from"
        )
    group = order.width * len(order.pattern)
    index = order.index(group, to)
    for _ in range(rows // group):
        data = torch.frombuffer(bytearray(source.read(group * size // rows)), dtype=torch.uint8)
        target.write(data.view(group, -1)[index].numpy().data)


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size:
        data = source.read(min(size, CHUNK))
        target.write(data)
        size -= len(data)
