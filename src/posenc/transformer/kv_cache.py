"""What decoding keeps: encoded keys, values, and where the tokens behind them stand."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral
from typing import Any

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.backends.base import ShardedKeys
from posenc.guards import may_look
from posenc.positions import Coordinates, consecutive
from posenc.transformer.identity import Maker, same_maker
from posenc.transformer.layer_cache import (
    CutLayerCache,
    FixedLayerCache,
    LayerCache,
    checked_batch_rows,
    in_rows,
)

NONE = -(2**63) + 1
"""One past no token at all."""


class KeyValueCache:
    """Everything that an encoder keeps between the steps of decoding.

    Keys are kept *encoded*, so a step encodes its own tokens and no others. Positions and padding
    are those of all tokens so far, one record for all layers, and each row knows the position of
    its next token, so ``encoder(x_new, cache=cache)`` is all that a step needs.

    Keys of another encoder, of other encodings or of other weights are refused, and so are those
    that were made before something was set on the encoder, its layers or an encoding, as windows,
    a scale or the order of norms.

    Args:
        size: For decoding under ``torch.compile``: the largest number of tokens. All buffers have
            that length from the first call on and are written in place, so that one graph serves
            every step. ``None``: buffers grow.
        shards: Where keys and values are cut among devices, as ``posenc.distributed.KeyShards`` has
            it: each device keeps those of some tokens, and results for them merge. Every device is
            given the same tokens, but for a prompt that ``Encoder(..., shards=)`` reads in parts.

    Attributes:
        length: Number of tokens that are kept, padding included.
        layers: One ``LayerCache`` an attention layer, made when the layer first runs.
        positions: ``[seq]`` or ``[batch, seq]``: where the cached tokens stand, whole or real.
        padding_mask: ``[batch, seq]``, true where a cached token is real; ``None``: all are.
        next_position: ``[]`` or ``[batch]``: one past the furthest real token of each row; ``None``
            where that says nothing, as after coordinates.
        below: A bound that no position reaches, if it is known without looking at the values.
        writing: Which places the tokens of this step take, if the size is fixed.
        held: ``[own]``: the places in the row of the tokens whose keys this device keeps, if cut.
        keeping: ``[own]``: which of the tokens of this pass these are.
        reads_shards: Whether the tokens of this pass are themselves cut among devices.
        maker: The encoder whose keys are kept; no other is served.
        begun_in: The backward pass inside which the first tokens came, -1 outside of any; ``None``
            where there are none yet.

    Raises:
        TypeError: ``shards`` is no ``KeyShards``.
        ValueError: ``size`` is not positive, or more tokens come than it has places; ``shards`` is
            given beside it.

    Example:
        >>> cache = KeyValueCache()
        >>> cache.extend(torch.arange(5), None, below=5)
        >>> cache.length, cache.next_position
        (5, tensor(5))
        >>> cache.crop(3)
        >>> cache
        KeyValueCache(length=3, layers=0)
    """

    def __init__(self, size: int | None = None, *, shards: ShardedKeys | None = None) -> None:
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        if size is not None and (not whole or size < 1):
            raise ValueError(f"size is {size!r}; it must be a number of tokens from 1 on, or None.")
        if shards is not None and not hasattr(shards, "kept"):
            raise TypeError(
                f"shards is a {type(shards).__name__}; keys are cut among devices by "
                f"KeyShards(group). Leave it out where each device has them all."
            )
        if size is not None and shards is not None:
            raise ValueError(
                f"size is {size} and shards were given; a graph of one step holds all keys. Leave "
                f"size out."
            )
        self.size, self.shards = None if size is None else int(size), shards
        self.layers: list[LayerCache] = []
        self.positions: Tensor | Coordinates | None = None
        self.padding_mask: Tensor | None = None
        self.next_position: Tensor | None = None
        self.below: int | None = 0
        self.writing: Tensor | None = None
        self.held: Tensor | None = None
        self.keeping: Tensor | None = None
        self.reads_shards = False
        self.maker: Maker | None = None
        self.begun_in: int | None = None
        self._length: int | Tensor = 0

    def __copy__(self) -> "KeyValueCache":
        # Two answers to one prompt would write to the same buffers, and miss each other's tokens.
        apart = {} if self.shards is None else {id(self.shards): self.shards}
        return deepcopy(self, apart)  # but in the same group

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "begun_in" not in state:  # of a file that was written before this was noted
            self.begun_in = None if self.is_empty else -1

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={self.size}"
        return f"KeyValueCache(length={self.length}, layers={len(self.layers)}{size})"

    @property
    def length(self) -> int:
        """Number of tokens that are kept, padding included."""
        return int(self._length)

    @property
    def places(self) -> int:
        """Number of keys that attention is given: the tokens, or all places of a fixed size."""
        if self.held is not None:
            return len(self.held)
        return self.length if self.size is None else self.size

    @property
    def is_empty(self) -> bool:
        """Whether no token is kept; buffers of a fixed size may be there already."""
        if isinstance(self._length, Tensor) and may_look(self._length):
            return not self.length
        return self.positions is None

    @property
    def begins(self) -> bool:
        """Whether the tokens that are being written to a fixed size are its first."""
        return self.writing is not None and may_look(self.writing) and not int(self.writing[0])

    def layer(self, index: int) -> LayerCache:
        """The part of one attention layer.

        Raises:
            ValueError: ``index`` is no whole number from 0 on.
        """
        if type(index) is not int or index < 0:
            check_whole(0, index=index)
        while len(self.layers) <= index:
            self.layers.append(self._new_layer())
        return self.layers[index]

    def _new_layer(self) -> LayerCache:
        if self.shards is not None:
            return CutLayerCache(self)
        return LayerCache() if self.size is None else FixedLayerCache(self)

    def serve(self, maker: Maker) -> None:
        """Note which encoder adds tokens.

        Raises:
            ValueError: Another one made the keys that are kept.
        """
        self.maker = same_maker(self.maker, maker, "encoder")

    def hand_over(self) -> None:
        """Let the next encoder go on from these keys, whoever made them.

        That is for one which would have made the same: a copy with equal weights, as a drafting
        model may be, or the encoder of a cache that came from a file; and for keys that were
        themselves changed, as by ``posenc.rerotate``. Nothing is known of these keys then.

        Example:
            >>> from copy import deepcopy
            >>> from posenc.transformer import Encoder, KeyValueCache
            >>> encoder = Encoder(8, 2, 1, is_causal=True).eval()
            >>> cache, twin = KeyValueCache(), deepcopy(encoder)
            >>> with torch.no_grad():
            ...     _ = encoder(torch.zeros(1, 3, 8), cache=cache)
            ...     cache.hand_over()
            ...     twin(torch.zeros(1, 1, 8), cache=cache).shape
            torch.Size([1, 1, 8])
        """
        self.maker = None
        for layer in self.layers:
            layer.hand_over()

    def extend(
        self,
        positions: Int64[Tensor, "*batch new"] | Coordinates,
        padding_mask: Bool[Tensor, "batch new"] | None,
        *,
        below: int | None = None,
        batch: int | None = None,
    ) -> None:
        """Record where new tokens stand, and which of them are real.

        Args:
            positions: Where they stand. Coordinates and those that are kept are kept at a common
                scale.
            padding_mask: Which are real; all if not given.
            below: A bound that no position reaches, if one is known without a look.
            batch: Rows of the batch, where the size is fixed and ``positions`` are those of all.

        Raises:
            TypeError: Coordinates come to a cache of fixed size, or one that is cut among devices.
            ValueError: Grid positions meet others, the places of a fixed size do not suffice, or
                padding is told of other rows than before.
        """
        if isinstance(positions, Coordinates) and not (self.size is None and self.shards is None):
            raise TypeError(
                "positions are Coordinates, whose scale may change with each step, and the cache "
                "has a fixed size or is cut among devices. Let it grow, as KeyValueCache(), or "
                "give whole numbers of one step, and an encoding whose frequencies are those of a "
                "step, as Rotary(Linear(schedule, factor))."
            )
        if padding_mask is not None:
            check_rows(self, len(padding_mask), "padding_mask")
        elif positions.ndim > 1 and positions.shape[0] > 1:
            check_rows(self, positions.shape[0], "positions")
        if isinstance(positions, Tensor) and not positions.numel():
            raise ValueError(
                "There are no tokens to keep. Leave the call out: a cache goes on as it is."
            )
        if self.size is not None:
            assert isinstance(positions, Tensor)
            self._write(positions, padding_mask, batch)
            if below is None:
                self.below = None
            return
        axis = 1 if positions.ndim == 3 else -1
        if self.positions is not None and (positions.ndim == 3) != (self.positions.ndim == 3):
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}; the cache holds "
                f"{tuple(self.positions.shape)}. Pass grid positions [batch, seq, axes] with every "
                f"step, or with none."
            )
        seq, so_far = positions.shape[axis], _where_any(self.next_position, self.padding_mask)
        self.padding_mask = _joined_masks(self.padding_mask, self.length, padding_mask, seq)
        self.positions = _joined_rows(self.positions, positions, axis)
        self.next_position = None
        if isinstance(self.positions, Tensor) and isinstance(positions, Tensor):
            self.next_position = _one_past(positions, padding_mask, so_far)
        self._length = self.length + seq
        self.below = below
        if self.shards is not None:
            first, self.reads_shards = self.length - seq, False
            self._keep(self.shards.kept(first, seq, positions.device), first)

    def read(
        self,
        positions: Int64[Tensor, "*batch seq"],
        padding_mask: Bool[Tensor, "batch seq"] | None,
        held: Int64[Tensor, "local"],
        *,
        below: int | None = None,
    ) -> None:
        """Record a prompt that is cut among devices, each of which keeps what it reads.

        Args:
            positions: Where all of its tokens stand.
            padding_mask: Which of them are real; all if not given.
            held: The places in the row of the tokens that this device reads; −1 for none.
            below: A bound that no position reaches, if one is known without a look.

        Raises:
            ValueError: The cache is not one for shards, or holds tokens already.
        """
        if self.shards is None:
            raise ValueError(
                "A prompt is cut among devices and the cache would keep a part of its keys as if "
                "they were all. Build KeyValueCache(shards=KeyShards(group))."
            )
        if not self.is_empty:
            raise ValueError(
                f"A prompt is cut among devices and the cache holds {self.length} tokens already, "
                f"which it would not see. Read it first, or give later tokens to every device."
            )
        self.extend(positions, padding_mask, below=below)
        self.reads_shards, self.held = True, None
        keeping = (held >= 0).nonzero().flatten()
        self._keep(keeping, 0, held[keeping])

    def _keep(self, keeping: Tensor, first: int, places: Tensor | None = None) -> None:
        self.keeping = keeping
        places = keeping + first if places is None else places
        self.held = places if self.held is None else torch.cat([self.held, places])

    @property
    def last_position(self) -> Tensor | None:
        """``[1]`` or ``[batch, 1]``: where the last token stands, if that is one whole number."""
        if not isinstance(self.positions, Tensor) or self.positions.ndim > 2:
            return None
        if isinstance(self._length, Tensor):
            return self.positions.index_select(1, (self._length - 1).clamp(min=0).view(1))
        return self.positions[..., -1:]

    @property
    def own_positions(self) -> Tensor | Coordinates:
        """Where the tokens stand whose keys this device keeps."""
        assert self.positions is not None
        if self.held is None:
            return self.positions
        assert isinstance(self.positions, Tensor)
        axis = 1 if self.positions.ndim == 3 else self.positions.ndim - 1
        return self.positions.index_select(axis, self.held)

    @property
    def own_padding_mask(self) -> Tensor | None:
        """Which of these are real; ``None``: all."""
        if self.padding_mask is None or self.held is None:
            return self.padding_mask
        return self.padding_mask.index_select(1, self.held)

    def _write(self, positions: Tensor, padding_mask: Tensor | None, batch: int | None) -> None:
        assert self.size is not None
        seq = positions.shape[-1]
        if positions.ndim > 2:
            raise ValueError("Grid positions and a cache of fixed size were given. Let it grow.")
        if batch is None and padding_mask is not None:
            batch = len(padding_mask)
        if batch is None and positions.ndim == 2 and len(positions) > 1:
            batch = len(positions)
        if batch is not None:
            self.make_room(batch, positions.device)
        if self.positions is None:
            self._allocate(batch or 1, positions.device)
        assert isinstance(self._length, Tensor)
        if may_look(self._length) and self.length + seq > self.size:
            raise ValueError(
                f"{seq} tokens come to a cache that holds {self.length} of at most {self.size}. "
                f"Build KeyValueCache(size=...) for the longest sequence."
            )
        positions = positions.expand(len(self.positions), seq)  # type: ignore[arg-type]
        real = (
            torch.ones_like(positions, dtype=torch.bool) if padding_mask is None else padding_mask
        )
        so_far = _where_any(self.next_position, self.padding_mask)
        self.writing = self._length + consecutive(seq, device=positions.device)
        assert isinstance(self.positions, Tensor)
        self.positions.index_copy_(1, self.writing, positions)
        self.padding_mask.index_copy_(1, self.writing, real)  # type: ignore[union-attr]
        self.next_position.copy_(_one_past(positions, real, so_far))  # type: ignore[union-attr]
        self._length.add_(seq)

    def make_room(self, rows: int, device: torch.device) -> None:
        """Leave emptied buffers of a fixed size to their own batch, for one of other rows."""
        if not isinstance(self.positions, Tensor) or self.size is None or not self.is_empty:
            return
        if rows != len(self.positions) or device != self.positions.device:
            self.positions = self.padding_mask = self.next_position = None
            self._length = 0

    def _allocate(self, batch: int, device: torch.device) -> None:
        assert self.size is not None
        with torch.inference_mode(False):
            self._length = torch.zeros((), dtype=torch.int64, device=device)
            self.positions = torch.zeros(batch, self.size, dtype=torch.int64, device=device)
            self.padding_mask = torch.zeros(batch, self.size, dtype=torch.bool, device=device)
            self.next_position = torch.zeros(batch, dtype=torch.int64, device=device)

    @property
    def first_row(self) -> Tensor | None:
        """The place of this step's first token, where the size is fixed."""
        return None if self.writing is None else self.writing[:1]

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens, as when guessed ones are rejected.

        Raises:
            ValueError: It is negative, or more than there are.
        """
        length = int(length)
        if not 0 <= length <= self.length:
            raise ValueError(f"length is {length}; the cache holds {self.length} tokens.")
        own = length if self.held is None else int((self.held < length).sum())
        for layer in self.layers:
            if own or not length:
                layer.crop(own)
            else:
                layer.length = 0  # other devices keep tokens of these rows
        if not length:
            self.maker = self.begun_in = None
        if self.positions is None:
            return
        if isinstance(self._length, Tensor):
            assert self.padding_mask is not None
            assert self.next_position is not None
            assert isinstance(self.positions, Tensor)
            self._clear(slice(length, self.length))
            self._length.fill_(length)
            self.padding_mask[:, length:] = False
            self.next_position.copy_(_one_past(self.positions, self.padding_mask, None))
            return
        self._length = length
        self.held = None if self.held is None or not length else self.held[self.held < length]
        grid = self.positions.ndim == 3
        self.positions = self.positions[:, :length] if grid else self.positions[..., :length]
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask[:, :length]
        if not length:
            self.positions = self.padding_mask = self.next_position = None
            self.below = 0
        elif isinstance(self.positions, Tensor):
            self.next_position = _one_past(self.positions, self.padding_mask, None)

    def _clear(self, places: slice) -> None:
        """Zero the keys and values at these places of a fixed size."""
        for layer in self.layers:
            if isinstance(layer, FixedLayerCache):
                layer.clear(places)

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order, as a beam search does.

        Raises:
            TypeError: ``rows`` are neither integers nor a mask.
            ValueError: They have several axes.
            IndexError: There is no such row.

        Example:
            >>> cache = KeyValueCache()
            >>> cache.extend(torch.tensor([[0, 1], [5, 6]]), None)
            >>> cache.reorder(torch.tensor([1, 1]))
            >>> cache.positions
            tensor([[5, 6],
                    [5, 6]])
        """
        rows = checked_batch_rows(rows)
        for layer in self.layers:
            layer.reorder(rows)
        if isinstance(self._length, Tensor):
            self.positions = in_rows(self.positions, rows)  # type: ignore[arg-type]
            self.padding_mask = in_rows(self.padding_mask, rows)  # type: ignore[arg-type]
            self.next_position = in_rows(self.next_position, rows)  # type: ignore[arg-type]
            return
        if self.positions is not None and self.positions.ndim > 1 and len(self.positions) > 1:
            self.positions = self.positions[rows]
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask[rows]
        if self.next_position is not None and self.next_position.numel() > 1:
            self.next_position = self.next_position[rows]

    def repeat(self, n: int) -> None:
        """Give each row of the batch ``n`` copies of itself, side by side: one prompt, n answers.

        Raises:
            ValueError: ``n`` is not positive, or nothing is kept yet.
        """
        kept = [layer.keys for layer in self.layers if layer.keys is not None]
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1 or not kept:
            raise ValueError(
                f"n is {n!r} and the cache holds {len(kept)} layers; repeat a filled cache 1 time "
                f"or more."
            )
        rows = torch.arange(len(kept[0]), device=kept[0].device)
        self.reorder(rows.repeat_interleave(int(n)))

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Put everything back as it was if a step fails, so that a refused step leaves no trace."""
        with torch.inference_mode(False):  # later steps write to what is put back, in any mode
            records = {
                name: value.clone()
                if self.size is not None and isinstance(value, Tensor)
                else value
                for name, value in vars(self).items()
            }
        lengths = [None if each.keys is None else each.length for each in self.layers]
        try:
            yield
        except BaseException:
            written = self._length
            vars(self).update(records)
            self._clear(slice(self.length, int(written)))
            del self.layers[len(lengths) :]
            for length, layer in zip(lengths, self.layers, strict=True):
                layer.crop(length or 0)
                if length is None:
                    layer.forget()
            raise


def check_rows(cache: KeyValueCache, rows: int, name: str = "x") -> None:
    """Refuse so many rows of new tokens where others are kept.

    Raises:
        ValueError: The cache holds another number of them.

    Example:
        >>> cache = KeyValueCache()
        >>> cache.extend(torch.arange(2), torch.ones(2, 2, dtype=torch.bool))
        >>> check_rows(cache, 3)
        Traceback (most recent call last):
        ...
        ValueError: 3 rows of x come to a cache that holds 2. Use one cache for one batch; \
cache.repeat(n) makes several rows of each.
    """
    if cache.is_empty:
        return
    told = [cache.padding_mask, *[layer.keys for layer in cache.layers[:1]]]
    kept = [each.shape[0] for each in told if each is not None]
    if cache.positions is not None and cache.positions.ndim > 1 and cache.positions.shape[0] > 1:
        kept.append(cache.positions.shape[0])
    if any(held != rows for held in kept):
        raise ValueError(
            f"{rows} rows of {name} come to a cache that holds {kept[0]}. Use one cache for one "
            f"batch; cache.repeat(n) makes several rows of each."
        )


def _joined_rows(
    kept: Tensor | Coordinates | None, new: Tensor | Coordinates, axis: int
) -> Tensor | Coordinates:
    if kept is None:  # a copy, since whoever gave them may count on in place
        return new.clone() if isinstance(new, Tensor) else Coordinates.cat([new], dim=axis)
    rows = torch.broadcast_shapes(kept.shape[:axis], new.shape[:axis])
    kept, new = (each.expand(*rows, *each.shape[axis:]) for each in (kept, new))
    if isinstance(kept, Coordinates) or isinstance(new, Coordinates):
        return Coordinates.cat([Coordinates(kept), Coordinates(new)], dim=axis)
    return torch.cat([kept, new], dim=axis)


def _joined_masks(kept: Tensor | None, length: int, new: Tensor | None, seq: int) -> Tensor | None:
    if kept is None:
        if new is None:
            return None
        kept = new.new_ones(new.shape[0], length)
    elif new is None:
        new = kept.new_ones(kept.shape[0], seq)
    return torch.cat([kept, new], dim=-1)


def _where_any(next_position: Tensor | None, padding_mask: Tensor | None) -> Tensor | None:
    """Where rows go on that hold a real token; the others may begin anywhere, before 0 too."""
    if next_position is None or padding_mask is None:
        return next_position
    return next_position.where(padding_mask.any(-1), NONE)


def _one_past(positions: Tensor, padding_mask: Tensor | None, so_far: Tensor | None) -> Tensor:
    if positions.ndim == 3:
        positions = positions.amax(-1)
    if padding_mask is not None:
        positions = positions.where(padding_mask, NONE - 1)
    past = positions.amax(-1).clamp(max=-NONE - 1) + 1  # the last int64 at most
    if so_far is not None:
        past = torch.maximum(past, so_far)
    return past if padding_mask is None else past.where(past != NONE, 0)
