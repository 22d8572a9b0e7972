"""How the tokens of one pass are laid out: where they stand, and which of them may meet."""

from dataclasses import dataclass

import torch
from torch import Tensor

from posenc.backends.specification import AttentionSpecification
from posenc.positions import checked, consecutive, left_padded, packed
from posenc.transformer.kv_cache import KeyValueCache


@dataclass(frozen=True)
class Layout:
    """Positions of one pass, and who sees whom.

    Attributes:
        positions: Where the tokens of this pass stand.
        below: A bound that no position reaches, if one is known without looking.
        specification: The tokens of this pass and those that they may look at, cached ones first.
    """

    positions: Tensor
    below: int | None
    specification: AttentionSpecification


def laid_out(
    x: Tensor,
    positions: Tensor | None,
    *,
    causal: bool = False,
    padding_mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    cache: KeyValueCache | None = None,
) -> Layout:
    """The layout that the arguments of ``Encoder.forward`` describe; tokens enter the cache.

    Raises:
        TypeError: Positions or ids are not integers, or the padding mask is not boolean.
        ValueError: A shape does not fit, or arguments are given that exclude each other.
    """
    batch, seq = x.shape[:2]
    check_masks(batch, seq, padding_mask, document_ids)
    if cache is not None:
        check_cache(causal, document_ids)
    below, given = None, positions is not None
    if positions is None:
        positions, below = _default_positions(x, padding_mask, document_ids, cache)
    else:
        positions = checked(positions)
        check_positions(positions, batch, seq)
    key_positions, keys_real, k_len = positions, padding_mask, seq
    if cache is not None:
        cache.extend(positions, padding_mask, below=below)
        assert cache.positions is not None
        key_positions, keys_real, k_len = cache.positions, cache.padding_mask, cache.length
    # Positions that follow from the length alone are left out: nobody has to look at them.
    plainly = not given and padding_mask is None and document_ids is None and cache is None
    specification = AttentionSpecification(
        batch=batch,
        q_len=seq,
        k_len=k_len,
        q_positions=None if plainly else positions,
        k_positions=None if plainly else key_positions,
        causal=causal,
        by_row=True,
        padding_mask=keys_real,
        document_ids=document_ids,
        device=x.device,
    )
    return Layout(positions, below, specification)


def _default_positions(
    x: Tensor,
    padding_mask: Tensor | None,
    document_ids: Tensor | None,
    cache: KeyValueCache | None,
) -> tuple[Tensor, int | None]:
    seq = x.shape[1]
    if document_ids is not None:
        return _in_documents(document_ids, padding_mask), seq
    new = consecutive(seq, device=x.device) if padding_mask is None else left_padded(padding_mask)
    if cache is None or cache.next_position is None:
        return new, seq
    below = None if cache.below is None else cache.below + seq
    return cache.next_position.unsqueeze(-1) + new, below


def _in_documents(document_ids: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Each document's tokens counted from 0; padding in it counts for nothing."""
    index = packed(document_ids=document_ids)
    if padding_mask is None:
        return index
    real = padding_mask.long()
    count = real.cumsum(-1)
    begin = consecutive(real.shape[-1], device=real.device) - index
    return (count - 1 - (count - real).gather(-1, begin)).clamp(min=0)


def check_masks(
    batch: int, seq: int, padding_mask: Tensor | None, document_ids: Tensor | None
) -> None:
    """Raise for a padding mask or document ids that are no such thing."""
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(
            f"padding_mask is {padding_mask.dtype}; it must be bool [batch, seq], True where a "
            f"token is real. For a mask of ones and zeros pass mask.bool(); for torch.nn's "
            f"src_key_padding_mask, which is True at padding, pass ~mask."
        )
    given = {"padding_mask": padding_mask, "document_ids": document_ids}
    for name, value in given.items():
        if value is not None and value.shape != (batch, seq):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; x has {batch} rows of {seq} tokens. "
                f"Pass one value a token, [{batch}, {seq}]."
            )


def check_cache(causal: bool, document_ids: Tensor | None) -> None:
    """Raise where a cache would not give what one pass gives."""
    if not causal:
        raise ValueError(
            "A cache was given to an encoder with causal=False; there, earlier tokens would have "
            "to be computed again with each new one. Build it with causal=True, or pass no cache."
        )
    if document_ids is not None:
        raise ValueError(
            "document_ids and a cache were given; packed rows are for one pass. Decode each "
            "document as a row of a batch, padded on the left."
        )


def check_positions(positions: Tensor, batch: int, seq: int) -> None:
    """Raise where positions are not [seq], [batch, seq] or [batch, seq, axes]."""
    shape = tuple(positions.shape)
    if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
        raise ValueError(
            f"positions have shape {shape}; x has {batch} rows of {seq} tokens. Pass [{seq}] for "
            f"all rows alike, [{batch}, {seq}], or [{batch}, {seq}, axes] for a grid."
        )
