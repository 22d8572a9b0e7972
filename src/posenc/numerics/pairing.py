"""Which two channels of a head form a rotated pair, and conversion of weights between the two ways.

``half`` pairs channel i with i + width/2 (Llama in transformers, GPT-NeoX, Gemma, Qwen);
``interleaved`` pairs channel 2i with 2i + 1 (the RoFormer paper, GPT-J, Meta's Llama, Cohere).
A permutation of the channels of queries and keys alike takes one to the other, and no score moves.
"""

from typing import Literal, get_args

from jaxtyping import Shaped
from torch import Tensor

from posenc.arguments import check_choice, check_whole

Pairing = Literal["half", "interleaved"]
Rotated = Literal["prefix", "suffix"]


def checked_pairing(pairing: str) -> Pairing:
    """``pairing`` if it is one of the two."""
    check_choice(get_args(Pairing), pairing=pairing)
    return pairing  # type: ignore[return-value]


def split(
    x: Shaped[Tensor, "*shape width"], pairing: Pairing
) -> tuple[Shaped[Tensor, "*shape pairs"], Shaped[Tensor, "*shape pairs"]]:
    """The first and the second channel of every pair, as views."""
    if pairing == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]


def permutation(
    rotated_dim: int, to: Pairing, *, head_dim: int | None = None, rotated: Rotated = "prefix"
) -> list[int]:
    """For each channel of a head paired as ``to``, the channel it was in the other pairing.

    Args:
        rotated_dim: Width that is rotated, r.
        to: The pairing that the channels are brought to; they come in the other one.
        head_dim: Width of the head, where it is more than r; the rest stays in place.
        rotated: Whether the first or the last r channels are rotated.

    Example:
        >>> permutation(6, to="interleaved"), permutation(6, to="half")
        ([0, 3, 1, 4, 2, 5], [0, 2, 4, 1, 3, 5])
    """
    check_choice(get_args(Pairing), to=to)
    check_choice(get_args(Rotated), rotated=rotated)
    head_dim = rotated_dim if head_dim is None else head_dim
    check_whole(rotated_dim=rotated_dim, head_dim=head_dim)
    if rotated_dim % 2 or rotated_dim > head_dim:
        raise ValueError(f"rotated_dim is {rotated_dim}; it must be even and at most {head_dim}.")
    half, channels = rotated_dim // 2, list(range(head_dim))
    first = head_dim - rotated_dim if rotated == "suffix" else 0
    turned = channels[first : first + rotated_dim]
    if to == "interleaved":
        order = [turned[pair + side] for pair in range(half) for side in (0, half)]
    else:
        order = turned[0::2] + turned[1::2]
    return channels[:first] + order + channels[first + rotated_dim :]


def convert_channels(
    x: Shaped[Tensor, "*shape head_dim"],
    to: Pairing,
    *,
    rotated_dim: int | None = None,
    rotated: Rotated = "prefix",
) -> Shaped[Tensor, "*shape head_dim"]:
    """Queries, keys, a key cache, or the scale of a norm over one head, in the other pairing.

    Args:
        x: Its last axis is a head.
        to: The pairing to convert to.
        rotated_dim: Width that is rotated; the whole head unless given.
        rotated: Whether the first or the last ``rotated_dim`` channels are rotated.

    Example:
        >>> import torch
        >>> convert_channels(torch.arange(6), "half", rotated_dim=4)
        tensor([0, 2, 1, 3, 4, 5])
    """
    width = x.shape[-1]
    turned = width if rotated_dim is None else rotated_dim
    return x[..., permutation(turned, to, head_dim=width, rotated=rotated)]


def convert_projection(
    weight: Shaped[Tensor, "rows *columns"],
    to: Pairing,
    *,
    head_dim: int,
    rotated_dim: int | None = None,
    rotated: Rotated = "prefix",
) -> Shaped[Tensor, "rows *columns"]:
    """The weight or bias of a query or key projection, so that it gives the other pairing.

    The number of heads follows from the rows, so grouped keys need nothing more. Values and the
    output projection stay as they are. The scale of a norm over all heads is converted alike.

    Args:
        weight: ``[heads · head_dim, in]`` as ``nn.Linear`` keeps it, or a bias.
        to: The pairing to convert to.
        head_dim: Width of a head.
        rotated_dim: As of ``convert_channels``.
        rotated: Likewise.

    Example:
        >>> import torch
        >>> convert_projection(torch.arange(8), "interleaved", head_dim=4)
        tensor([0, 2, 1, 3, 4, 6, 5, 7])
    """
    check_whole(head_dim=head_dim)
    turned = head_dim if rotated_dim is None else rotated_dim
    order = permutation(turned, to, head_dim=head_dim, rotated=rotated)
    return weight.unflatten(0, (-1, head_dim))[:, order].flatten(0, 1)


FusedOrder = Literal["concatenated", "grouped"]


def convert_fused(
    weight: Shaped[Tensor, "rows *columns"],
    to: Pairing,
    *,
    heads: int,
    head_dim: int,
    order: FusedOrder,
    kv_heads: int | None = None,
    rotated_dim: int | None = None,
    rotated: Rotated = "prefix",
) -> Shaped[Tensor, "rows *columns"]:
    """The weight or bias of one projection for queries, keys and values together.

    Args:
        weight: ``[(heads + 2 · kv_heads) · head_dim, in]``, or a bias.
        to: The pairing to convert to.
        heads: Number of query heads.
        head_dim: Width of a head.
        order: ``"concatenated"``: all queries, all keys, all values (Phi-3). ``"grouped"``: for
            each key head its queries, its key, its value (Falcon; GPT-NeoX, with one query a
            group).
        kv_heads: Number of key heads; as many as query heads unless given.
        rotated_dim: As of ``convert_channels``.
        rotated: Likewise.

    Example:
        >>> import torch
        >>> convert_fused(torch.arange(12), "half", heads=1, head_dim=4, order="grouped")
        tensor([ 0,  2,  1,  3,  4,  6,  5,  7,  8,  9, 10, 11])
    """
    kv_heads = heads if kv_heads is None else kv_heads
    check_whole(heads=heads, head_dim=head_dim, kv_heads=kv_heads)
    check_choice(get_args(FusedOrder), order=order)
    rows = (heads + 2 * kv_heads) * head_dim
    if weight.shape[0] != rows or heads % kv_heads:
        raise ValueError(f"weight has {weight.shape[0]} rows; these heads have {rows}, in groups.")
    groups = kv_heads if order == "grouped" else 1
    each = weight.unflatten(0, (groups, -1, head_dim)).clone()
    rotated_heads = each.shape[1] - kv_heads // groups  # all but the values of a group
    turned = head_dim if rotated_dim is None else rotated_dim
    channels = permutation(turned, to, head_dim=head_dim, rotated=rotated)
    each[:, :rotated_heads] = each[:, :rotated_heads][:, :, channels]
    return each.flatten(0, 2)
