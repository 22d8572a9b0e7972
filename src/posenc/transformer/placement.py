"""Where the tokens of one pass stand, and which of them may meet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from posenc.backends.arguments import checked_attn_mask
from posenc.backends.base import ShardedTokens, Spreading
from posenc.backends.neighbors import check_documents_are_told, check_padding_is_outside
from posenc.backends.specification import AttentionSpecification
from posenc.encodings.base import ScoreEncoding
from posenc.encodings.positional import Positional
from posenc.guards import may_look
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
from posenc.transformer.buffers import PADDING, at_places
from posenc.transformer.cache import KeyValueCache


@dataclass(frozen=True)
class Placement:
    """Positions of one pass, and who sees whom."""

    positions: Tensor | Coordinates  # where encodings take the tokens of this pass to stand
    below: int | None  # a bound that no position reaches, if one is known without looking
    specification: AttentionSpecification  # whom these tokens may look at
    spreading: Spreading | None = None  # where tokens are cut among devices


def placed(
    x: Tensor,
    positions: Any,
    *,
    layers: Sequence[Positional] = (),
    is_causal: bool = False,
    padding_mask: Tensor | None = None,
    document_ids: Tensor | None = None,
    attn_mask: Tensor | None = None,
    cache: KeyValueCache | None = None,
) -> Placement:
    """The placement that the arguments of ``Encoder.forward`` describe; tokens enter the cache."""
    batch, seq = x.shape[:2]
    first = layers[0] if layers else Positional()
    if document_ids is not None:
        document_ids = checked(document_ids, "document_ids", device=x.device)
    if cache is not None:
        check_cacheable(layers, is_causal, document_ids)
        rows = cache.layers[0].rows if cache.layers and not cache.is_empty else ()
        if rows and rows[0].shape[0] != batch:
            held = rows[0].shape[0]
            raise ValueError(f"{batch} rows come to a cache of {held}: the batch must agree.")
    below, q_rows, given = None, None, positions is not None
    # Positions that follow from the length alone are left out: nobody has to look at them.
    counted = not given and padding_mask is None and document_ids is None
    if cache is not None:
        counted = counted and cache.counted
    if counted:
        before = 0 if cache is None else cache.length
        positions, below = consecutive(seq, start=before, device=x.device), before + seq
    elif given:
        positions = checked(positions, device=x.device, reals=True)
        _check_shape(positions, batch, seq)
        if cache is not None and attn_mask is None:
            _check_repeats(positions, padding_mask, cache)
    else:
        positions, below = _default_positions(x, padding_mask, document_ids, cache)
    if isinstance(positions, Tensor) and padding_mask is not None and positions.ndim < 3:
        positions = _over_padding(positions, padding_mask, cache)
    documents = None if document_ids is None else runs(document_ids)
    if len(first.tokens):
        check_documents_are_told(first.tokens, positions, documents)
        check_padding_is_outside(first.tokens, positions, padding_mask, documents)
    if attn_mask is not None:
        k_len = seq if cache is None else cache.size or cache.length + seq
        attn_mask = checked_attn_mask(attn_mask, x, x.new_empty(k_len, 0))
    k_positions, keys = positions, {"k_len": seq, "padding_mask": padding_mask}
    if cache is not None:
        cache.extend(positions, padding_mask, below=below, batch=batch, counted=counted)
        k_positions, keys = _kept(cache)
        if "k_rows" in keys:
            q_rows = consecutive(seq, start=cache.length - seq, device=x.device)
    if isinstance(k_positions, Coordinates):  # of new and kept tokens together
        positions, k_positions = common_scale(Coordinates(positions), k_positions)
    remapped = None
    if first.positions and first.remaps:
        remapped, below = first.remapped(positions), None
    specification = AttentionSpecification(
        batch=batch,
        q_len=seq,
        q_positions=None if counted else positions,
        k_positions=None if counted else k_positions,
        q_remapped=remapped,
        k_remapped=remapped,
        is_causal=is_causal,
        by_row=True,
        q_rows=q_rows,
        q_padding_mask=padding_mask,
        documents=documents,
        q_documents=documents,
        attn_mask=attn_mask,
        device=x.device,
        **keys,
    )
    spreading = None
    if cache is not None and cache.shards is not None:
        spreading = cache.shards.spreading(specification)
    return Placement(positions if remapped is None else remapped, below, specification, spreading)


def placed_in_shards(
    x: Tensor,
    positions: Any,
    shards: ShardedTokens,
    *,
    layers: Sequence[Positional] = (),
    is_causal: bool = False,
    cache: KeyValueCache | None = None,
    **masks: Tensor | None,
) -> Placement:
    """The same where ``x`` holds one device's tokens of rows that are cut among several."""
    batch, seq = x.shape[:2]
    for name, mask in masks.items():
        if mask is not None:  # it would describe one device's tokens alone
            raise ValueError(f"{name} and shards were given. Tell Shards({name}=...).")
    if not hasattr(shards, "local"):
        raise TypeError(f"shards is {shards!r}. For cut keys build KeyValueCache(shards=...).")
    if seq != shards.local:
        raise ValueError(f"x has {seq} tokens; {shards!r} has {shards.local}. Pass shards.cut(x).")
    check_cuttable(layers)
    below = None
    if positions is None:
        positions, below = shards.positions, shards.length
    positions = checked(positions, device=x.device, reals=True)
    _check_shape(positions, batch, seq)
    if cache is not None:
        check_cacheable(layers, is_causal, shards.document_ids)
        for layer in dict.fromkeys(layers):
            if cache.shards is not None:
                cache.shards.check(cast("Sequence[ScoreEncoding]", layer.scores))
        whole = shards.join(positions, dim=min(positions.ndim - 1, 1))
        real = None if shards.whole.real is None else shards.whole.real.expand(batch, -1)
        cache.read(whole, real, shards.places, below=below)
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


def _kept(cache: KeyValueCache) -> tuple[Tensor | Coordinates | None, dict[str, Any]]:
    """Where the keys that this device holds stand, and what else is said of them."""
    at, real, held = None if cache.counted else cache.positions, cache.padding_mask, cache.held
    if held is not None and at is not None:
        real = None if real is None else real[:, held]
        return at_places(at, held), {"k_len": len(held), "padding_mask": real, "k_rows": held}
    first_row = None if cache.writing is None else cache.writing[:1]
    k_len = cache.size or cache.length
    return at, {"k_len": k_len, "padding_mask": real, "first_row": first_row}


def _over_padding(positions: Tensor, real: Tensor, cache: KeyValueCache | None) -> Tensor:
    """Each token of padding at the place of the real token before it, which a cache may hold."""
    before = None if cache is None or cache.is_empty else cache.last_position
    if cache is None or before is None:
        return over_padding(positions, real)
    held = cache.padding_mask
    there = real.new_ones(len(real), 1) if held is None else held.any(-1, keepdim=True)
    before, positions = before.expand(len(real), 1), positions.expand(real.shape)
    joined = torch.cat([before, positions], dim=1)
    return over_padding(joined, torch.cat([there.expand(len(real), 1), real], dim=1))[:, 1:]


def _default_positions(
    x: Tensor,
    padding_mask: Tensor | None,
    document_ids: Tensor | None,
    cache: KeyValueCache | None,
) -> tuple[Tensor, int | None]:
    seq = x.shape[1]
    if document_ids is not None:
        return in_documents(document_ids, padding_mask), seq
    next_position, below = None, seq
    if cache is not None and not cache.is_empty:
        next_position = cache.next_position
        if next_position is None:
            raise ValueError("The cache holds Coordinates; pass positions of the new tokens, too.")
        if next_position.shape == (1,):  # of one row, of which there may be several copies by now
            next_position = next_position.expand(len(x))
        below = None if cache.below is None else cache.size or cache.below + seq
    if padding_mask is not None:
        return left_padded(padding_mask, start=0 if next_position is None else next_position), below
    new = consecutive(seq, device=x.device)
    return new if next_position is None else next_position.unsqueeze(-1) + new, below


def _check_shape(positions: Tensor | Coordinates, batch: int, seq: int) -> None:
    """Refuse positions of which one would serve several tokens."""
    shape = tuple(positions.shape)
    if shape != (seq,) and not (len(shape) in (2, 3) and shape[:2] in ((batch, seq), (1, seq))):
        raise ValueError(f"positions have shape {shape}; x has {batch} rows of {seq} tokens.")


def _check_repeats(
    positions: Tensor | Coordinates, real: Tensor | None, cache: KeyValueCache
) -> None:
    """Refuse branches of a tree that would see each other."""
    if not isinstance(positions, Tensor) or positions.ndim == 3 or not positions.is_cpu:
        return
    if not may_look(positions):
        return
    at = positions if real is None else positions.where(real, PADDING)
    kept = cache.positions
    if not cache.is_empty and isinstance(kept, Tensor):
        kept = kept if cache.padding_mask is None else kept.where(cache.padding_mask, PADDING)
        rows = torch.broadcast_shapes(kept.shape[:-1], at.shape[:-1])
        at = torch.cat([kept.expand(*rows, -1), at.expand(*rows, -1)], dim=-1)
    at = at.sort(-1).values
    if bool(((at[..., 1:] == at[..., :-1]) & (at[..., 1:] != PADDING)).any()):
        raise ValueError("positions repeat behind a cache; attn_mask must say who sees whom.")


def check_cacheable(
    layers: Iterable[Positional], is_causal: bool, document_ids: Tensor | None
) -> None:
    """Raise where a cache would not give what one pass gives."""
    if not is_causal:
        raise ValueError("A cache needs an encoder with is_causal=True.")
    if document_ids is not None:
        raise ValueError("document_ids and a cache were given. Decode each document as a row.")
    for layer in dict.fromkeys(layers):
        if layer.positions and layer.remaps:
            raise ValueError("Positions are drawn anew at each pass; leave cache out.")
        for encoding in (*layer.tokens, *layer.scores):
            reads_on = getattr(encoding, "reads_later", False)
            if reads_on or not getattr(encoding, "is_pointwise", True):
                raise ValueError(f"{type(encoding).__name__} reads later tokens; leave cache out.")


def check_cuttable(layers: Iterable[Positional]) -> None:
    """Raise where an encoding needs more of a row than one device holds, or draws by itself."""
    for layer in dict.fromkeys(layers):
        if layer.positions and layer.remaps:
            raise ValueError("Each device would draw its own positions; change whole rows.")
        for encoding in layer.tokens:
            name = type(encoding).__name__
            if not encoding.is_pointwise:
                raise ValueError(f"{name} reads tokens that other devices hold.")
            if encoding.training and getattr(encoding, "dropout", 0.0):
                raise ValueError(f"{name} would drop by device. Build it with dropout=0.0.")
