"""Where the tokens of one pass stand, and which of them may meet."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc.backends.base import ShardedTokens, Spreading
from posenc.backends.neighbors import check_documents_are_told, check_padding_is_outside
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.positional import Positional
from posenc.positions import (
    Coordinates,
    checked,
    common_scale,
    consecutive,
    in_documents,
    left_padded,
    over_padding,
    runs,
)
from posenc.transformer.kv_cache import KeyValueCache, check_rows


@dataclass(frozen=True)
class Placement:
    """Positions of one pass, and who sees whom.

    Attributes:
        positions: Where encodings take the tokens of this pass to stand.
        below: A bound that no position reaches, if one is known without looking.
        specification: The tokens of this pass and those that they may look at, cached ones first.
        spreading: Attention among the tokens of all devices, where they are cut among several.
    """

    positions: Tensor | Coordinates
    below: int | None
    specification: AttentionSpecification
    spreading: Spreading | None = None


def placed(
    x: Tensor,
    positions: Any,
    *,
    positional: Positional | None = None,
    is_causal: bool = False,
    padding_mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    cache: KeyValueCache | None = None,
) -> Placement:
    """The placement that the arguments of ``Encoder.forward`` describe; tokens enter the cache.

    Raises:
        TypeError: Positions or ids are not integers, or the padding mask is not boolean.
        ValueError: A shape does not fit, or arguments are given that exclude each other.
    """
    batch, seq = x.shape[:2]
    if document_ids is not None:
        document_ids = checked(document_ids, "document_ids", device=x.device)
    check_masks(batch, seq, padding_mask, document_ids)
    remaps = positional is not None and positional.remaps
    if cache is not None:
        check_cache(is_causal, document_ids, remaps)
        check_rows(cache, batch)
        cache.make_room(batch, x.device)
        check_pointwise(positional)
    below, given = None, positions is not None
    if given:
        positions = checked(positions, device=x.device, reals=True)
        check_positions(positions, batch, seq)
    else:
        positions, below = _default_positions(x, padding_mask, document_ids, cache)
    if isinstance(positions, Tensor) and padding_mask is not None and positions.ndim < 3:
        positions = _over_padding(positions, padding_mask, cache)
    # Positions that follow from the length alone are left out: nobody has to look at them.
    plainly = not given and padding_mask is None and document_ids is None and cache is None
    documents = None if document_ids is None else runs(document_ids)
    encodings = positional.tokens if positional else ()
    check_documents_are_told(encodings, positions, documents)
    check_padding_is_outside(encodings, positions, padding_mask, documents)
    keys = _Keys(positions, padding_mask, seq, None)
    if cache is not None:
        cache.extend(positions, padding_mask, below=below, batch=batch)
        kept = cache.own_positions
        if isinstance(kept, Coordinates):  # of new and kept tokens together
            positions, kept = common_scale(Coordinates(positions), kept)
        keys = _Keys(kept, cache.own_padding_mask, cache.places, cache.first_row, cache.held)
    remapped = None
    if remaps:
        assert positional is not None
        remapped, below = positional.remapped(positions), None
    specification = AttentionSpecification(
        batch=batch,
        q_len=seq,
        k_len=keys.length,
        q_positions=None if plainly else positions,
        k_positions=None if plainly else keys.positions,
        q_remapped=remapped,
        k_remapped=remapped,
        is_causal=is_causal,
        by_row=True,
        first_row=keys.first_row,
        q_rows=None if keys.rows is None else _last(seq, cache, x.device),
        k_rows=keys.rows,
        padding_mask=keys.real,
        q_padding_mask=padding_mask,
        documents=documents,
        q_documents=documents,
        device=x.device,
    )
    spreading = None
    if cache is not None and cache.shards is not None:
        spreading = cache.shards.spreading(specification)
    return Placement(positions if remapped is None else remapped, below, specification, spreading)


def _over_padding(positions: Tensor, real: Tensor, cache: KeyValueCache | None) -> Tensor:
    """Each token of padding at the place of the real token before it, which a cache may hold."""
    before = None if cache is None else cache.last_position
    held = None if cache is None else cache.padding_mask
    other = held is not None and len(held) != len(real)  # which the cache refuses
    if before is None or other or len(before) not in (1, len(real)):
        return over_padding(positions, real)
    there = real.new_ones(len(real), 1) if held is None else held.any(-1, keepdim=True)
    before, positions = before.expand(len(real), 1), positions.expand(real.shape)
    joined = torch.cat([before, positions], dim=1)
    return over_padding(joined, torch.cat([there, real], dim=1))[:, 1:]


def _last(count: int, cache: KeyValueCache | None, device: torch.device) -> Tensor:
    assert cache is not None
    return consecutive(count, start=cache.length - count, device=device)


def placed_in_shards(
    x: Tensor,
    positions: Any,
    shards: ShardedTokens,
    *,
    positional: Positional | None = None,
    is_causal: bool = False,
    cache: KeyValueCache | None = None,
) -> Placement:
    """The same where ``x`` holds one device's tokens of rows that are cut among several.

    Raises:
        TypeError: Positions are not integers.
        ValueError: A shape does not fit, or an encoding needs the tokens of other devices.
    """
    batch, seq = x.shape[:2]
    if seq != shards.local:
        raise ValueError(
            f"x has {seq} tokens a row; {shards!r} holds {shards.local} of them here. Pass "
            f"shards.cut(x)."
        )
    check_cuttable(positional)
    below = None
    if positions is None:
        positions, below = shards.positions, shards.length
    positions = checked(positions, device=x.device, reals=True)
    check_positions(positions, batch, seq)
    if cache is not None:
        check_cache(is_causal, shards.document_ids)
        if isinstance(positions, Coordinates):
            raise TypeError(
                "positions are Coordinates, and a cache that is cut among devices keeps whole "
                "ones. Decode with a cache of the whole row on each device, or give whole numbers "
                "of one step."
            )
        _read(cache, positions, shards, batch, below)
    specification = AttentionSpecification(
        batch=batch,
        q_len=seq,
        k_len=seq,
        q_positions=positions,
        k_positions=positions,
        is_causal=is_causal,
        by_row=True,
        device=x.device,
    )
    spreading = shards.spreading(specification)
    return Placement(positions, below, spreading.specification, spreading)


def _read(
    cache: KeyValueCache, positions: Tensor, shards: ShardedTokens, batch: int, below: int | None
) -> None:
    """Record a prompt in a cache that is cut as its tokens are."""
    if cache.shards is not None and cache.shards.group != shards.group:
        raise ValueError(
            f"{shards!r} and {cache.shards!r} of the cache have different groups. Build both on "
            f"one."
        )
    whole = shards.join(positions, dim=min(positions.ndim - 1, 1))
    real = None if shards.whole.real is None else shards.whole.real.expand(batch, -1)
    cache.read(whole, real, shards.places, below=below)


@dataclass(frozen=True)
class _Keys:
    """What the tokens of a pass may look at.

    Attributes:
        positions: Where they stand.
        real: Which of them are no padding.
        length: How many there are.
        first_row: The place of the first query among them, if it is not told by the lengths.
        rows: Their places in the row, if others of it lie on other devices.
    """

    positions: Tensor | Coordinates
    real: Tensor | None
    length: int
    first_row: Tensor | None
    rows: Tensor | None = None


def _default_positions(
    x: Tensor,
    padding_mask: Tensor | None,
    document_ids: Tensor | None,
    cache: KeyValueCache | None,
) -> tuple[Tensor, int | None]:
    seq = x.shape[1]
    if cache is not None and isinstance(cache.positions, Coordinates):
        raise ValueError(
            "The cache holds tokens at Coordinates, after which nothing says where the next ones "
            "stand. Pass positions=Coordinates(...) of the new tokens."
        )
    if document_ids is not None:
        return in_documents(document_ids, padding_mask), seq
    next_position, below = None, seq
    if cache is not None and cache.next_position is not None:
        next_position = cache.next_position
        if next_position.shape == (1,):  # of one row, of which there may be several copies by now
            next_position = next_position.expand(len(x))
        below = None if cache.below is None else cache.size or cache.below + seq
    if padding_mask is not None:
        return left_padded(padding_mask, start=0 if next_position is None else next_position), below
    new = consecutive(seq, device=x.device)
    return new if next_position is None else next_position.unsqueeze(-1) + new, below


def check_masks(
    batch: int, seq: int, padding_mask: Tensor | None, document_ids: Tensor | None
) -> None:
    """Raise for a padding mask or document ids that are no such thing."""
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(f"padding_mask is {padding_mask.dtype}; it must be boolean.")
    given = {"padding_mask": padding_mask, "document_ids": document_ids}
    for name, value in given.items():
        if value is not None and value.shape != (batch, seq):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; x has {batch} rows of {seq} tokens. "
                f"Pass one value a token, [{batch}, {seq}]."
            )


def check_cache(is_causal: bool, document_ids: Tensor | None, remaps: bool = False) -> None:
    """Raise where a cache would not give what one pass gives."""
    if not is_causal:
        raise ValueError(
            "A cache was given to an encoder with is_causal=False; there, earlier tokens would "
            "have to be computed again with each new one. Build it with is_causal=True, or pass "
            "no cache."
        )
    if document_ids is not None:
        raise ValueError(
            "document_ids and a cache were given; packed rows are for one pass. Decode each "
            "document as a row of a batch, padded on the left."
        )
    if remaps:
        raise ValueError(
            "The positions of a whole row are drawn anew at each pass, and a cache holds keys of "
            "earlier passes. Leave out the cache, or Positional(positions=...)."
        )


def check_pointwise(positional: Positional | None) -> None:
    """Raise where a token would be encoded by tokens that come after it."""
    for encoding in () if positional is None else positional.tokens:
        if not encoding.is_pointwise:
            raise ValueError(
                f"{type(encoding).__name__} reads the tokens beside each token, those after it "
                f"too, and a cache was given. Encode whole sequences without a cache."
            )
    for encoding in () if positional is None else positional.scores:
        if getattr(encoding, "reads_later", False):
            raise ValueError(
                f"{type(encoding).__name__} reads keys after the query, as reads_later says, and a "
                f"cache was given. Encode whole sequences without a cache."
            )


def check_cuttable(positional: Positional | None) -> None:
    """Raise where an encoding needs more of a row than one device holds, or draws by itself."""
    if positional is None:
        return
    if positional.remaps:
        raise ValueError(
            "positional changes positions, and each device would draw its own. Change the "
            "positions of the whole row, cut them, and leave Positional(positions=...) out."
        )
    for encoding in positional.tokens:
        name = type(encoding).__name__
        if not encoding.is_pointwise:
            raise ValueError(
                f"{name} reads the tokens beside each token, which other devices hold. Encode "
                f"whole rows before shards.cut, and leave it out here."
            )
        if encoding.training and getattr(encoding, "dropout", 0.0):
            raise ValueError(
                f"{name} was built with dropout={encoding.dropout}, which would fall on other "
                f"elements on each device. Build it with dropout=0.0."
            )


def check_positions(positions: Tensor | Coordinates, batch: int, seq: int) -> None:
    """Raise where positions are not [seq], [batch, seq] or [batch, seq, axes]."""
    shape = tuple(positions.shape)
    if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
        raise ValueError(
            f"positions have shape {shape}; x has {batch} rows of {seq} tokens. Pass [{seq}] for "
            f"all rows alike, [{batch}, {seq}], or [{batch}, {seq}, axes] for a grid."
        )
