"""What decoding keeps: encoded keys, values, and where the tokens behind them stand."""

from collections.abc import Sequence
from copy import copy
from operator import index
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.backends.base import ShardedKeys
from posenc.guards import may_look
from posenc.positions import Coordinates, consecutive
from posenc.transformer import buffers


class LayerCache:
    """Encoded keys and values of one attention layer, in buffers that double when they are full.

    What encodings of scores read in the hidden state of a key is kept beside it. While gradients
    are recorded the tokens are joined to new tensors, so decode under ``torch.no_grad`` or
    ``torch.inference_mode``.

    Args:
        owner: The cache that this one is a part of. If it has a fixed size, the buffers have that
            size, too, and all places are given to attention, which hides those without a token.

    Example:
        >>> cache = LayerCache()
        >>> keys, values = cache.append(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
        >>> keys, values = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
        >>> keys.shape, cache.length
        (torch.Size([1, 2, 4, 4]), 4)
    """

    def __init__(self, owner: "KeyValueCache | None" = None) -> None:
        self.owner, self.length = owner, 0
        self.rows: list[Tensor] = []  # of keys, of values, and of each feature
        self.fixed = owner is not None and owner.size is not None

    def __copy__(self) -> "LayerCache":
        made = LayerCache(self.owner)
        made.length, made.rows = self.length, [x.clone() for x in self.rows]
        return made

    @property
    def keys(self) -> Tensor | None:
        """The buffer of keys, which may be longer than they are."""
        return self.rows[0] if self.rows else None

    @property
    def values(self) -> Tensor | None:
        """That of values."""
        return self.rows[1] if self.rows else None

    @property
    def capacity(self) -> int:
        """Number of tokens that fit before the buffers grow."""
        return self.rows[0].shape[2] if self.rows else 0

    def append(
        self,
        keys: Float[Tensor, "batch kv_heads new head_dim"],
        values: Float[Tensor, "batch kv_heads new _"],
    ) -> tuple[Float[Tensor, "batch kv_heads kept _"], Float[Tensor, "batch kv_heads kept _"]]:
        """Keep these too, and give all that are kept; of a prompt that is cut, these alone."""
        owner, given = self.owner, (keys, values)
        if owner is not None and owner.keeping is not None:
            keys, values = (x.index_select(2, owner.keeping) for x in given)
        first = self.length
        if not self.fixed:  # a graph counts in its owner
            self.length += keys.shape[-2]
        kept = self._put(0, keys, first), self._put(1, values, first)
        return given if owner is not None and owner.reads_shards else kept

    def append_features(
        self, features: Sequence[Float[Tensor, "batch new _"]]
    ) -> list[Float[Tensor, "batch kept _"]]:
        """The same for what encodings read in the hidden state of the tokens appended last."""
        first = self.length - features[0].shape[-2]
        return [self._put(2 + i, x.unsqueeze(1), first)[:, 0] for i, x in enumerate(features)]

    def _put(self, at: int, new: Tensor, first: int) -> Tensor:
        """Keep ``new`` from place ``first`` on among the rows ``at``, and give all of them."""
        rows, owner = self.rows, self.owner
        kept = rows[at] if at < len(rows) else None
        if owner is None or owner.size is None or owner.writing is None:
            rows[at : at + 1] = [kept := buffers.grown(kept, new, first)]
            return kept.narrow(2, 0, first + new.shape[2])
        if kept is None or (owner.begins and not buffers.alike(kept, new)):
            rows[at : at + 1] = [kept := buffers.empty_places(owner.size, new)]
        return kept.index_copy_(2, owner.writing, new.to(kept.dtype))

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        self.length = min(self.length, length)
        if self.fixed:
            self.rows = [buffers.moved_up(x, None, length, 2) for x in self.rows]
        elif not length:
            self.rows = []

    def keep(self, rows: Int64[Tensor, "kept"]) -> None:
        """Forget all tokens but these."""
        if self.fixed:
            self.rows = [buffers.moved_up(x, rows, len(rows), 2) for x in self.rows]
        else:
            self.rows, self.length = [x.index_select(2, rows) for x in self.rows], len(rows)

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order."""
        self.rows = [buffers.in_rows(x, rows, in_place=self.fixed) for x in self.rows]


class KeyValueCache:
    """Everything that an encoder keeps between the steps of decoding.

    Keys are kept *encoded*, so a step encodes its own tokens and no others. Positions and padding
    are those of all tokens so far, one record for all layers, and each row knows the position of
    its next token, so ``encoder(x_new, cache=cache)`` is all that a step needs. Nothing notices
    another encoder, other weights or settings: empty the cache with ``crop(0)`` then.

    Args:
        size: For decoding under ``torch.compile``: the largest number of tokens. Buffers of that
            length are written in place, so that one graph serves every step. ``None``: they grow.
        shards: ``posenc.distributed.KeyShards``: each device keeps the keys of some tokens. All are
            given the same tokens, but for a prompt that ``Encoder(..., shards=)`` reads in parts.

    Attributes:
        layers: One ``LayerCache`` an attention layer, made when the layer first runs.
        padding_mask: ``[batch, seq]``, true where a cached token is real; ``None``: all are.
        below: A bound that no position reaches, if it is known without looking at the values.
        is_empty: Whether no token is kept; buffers of a fixed size may be there already.

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
        if size is not None:
            check_whole(size=size)
            if shards is not None:
                raise ValueError(f"size is {size} and shards were given. Leave size out.")
        self.size, self.shards = size, shards
        self.layers: list[LayerCache] = []
        self.counted = size is None and shards is None  # whether tokens stand at 0, 1, 2, …
        self._positions: Tensor | Coordinates | torch.device | None = None  # the device if counted
        self.padding_mask: Tensor | None = None
        self.below: int | None = 0
        self.is_empty, self.begins = True, True  # now, and before this step
        self.reads_shards = False  # whether the tokens of this step are cut among devices
        self.writing: Tensor | None = None  # places of the tokens of this step, in a fixed size
        self.held: Tensor | None = None  # [own]: places in the row of this device's tokens, if cut
        self.keeping: Tensor | None = None  # [own]: which of the tokens of this step it keeps
        self._length: int | Tensor = 0

    def __copy__(self) -> "KeyValueCache":
        made = KeyValueCache(self.size, shards=self.shards)
        with torch.inference_mode(False):  # two answers to one prompt write to their own buffers
            for name, x in vars(self).items():
                setattr(made, name, x.clone() if isinstance(x, Tensor) else x)
            made.layers = [copy(layer) for layer in self.layers]
        for layer in made.layers:
            layer.owner = made
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> "KeyValueCache":
        return copy(self)

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={self.size}"
        return f"KeyValueCache(length={self.length}, layers={len(self.layers)}{size})"

    @property
    def positions(self) -> Tensor | Coordinates | None:
        """``[seq]`` or ``[batch, seq]``: where the cached tokens stand, whole or real."""
        if isinstance(self._positions, torch.device):
            return consecutive(self.length, device=self._positions)
        return self._positions

    @property
    def length(self) -> int:
        """Number of tokens that are kept, padding included."""
        return int(self._length)

    @property
    def next_position(self) -> Tensor | None:
        """``[]`` or ``[batch]``: one past the furthest real token; ``None`` after coordinates."""
        if not isinstance(self.positions, Tensor):
            return None
        return buffers.one_past(self.positions, self.padding_mask)

    @property
    def last_position(self) -> Tensor | None:
        """``[1]`` or ``[batch, 1]``: where the last token stands, if that is one whole number."""
        return buffers.last(self.positions, self._length)

    def layer(self, index: int) -> LayerCache:
        """The part of one attention layer."""
        while len(self.layers) <= index:
            self.layers.append(LayerCache(self))
        return self.layers[index]

    def extend(
        self,
        positions: Int64[Tensor, "*batch new"] | Coordinates,
        padding_mask: Bool[Tensor, "batch new"] | None,
        *,
        below: int | None = None,
        batch: int | None = None,
        counted: bool = False,
    ) -> None:
        """Record where new tokens stand, below which bound, and which of them are real.

        ``counted`` says that they follow the tokens before them as these do each other.
        """
        if self.size is not None:
            self._write(self.size, positions, padding_mask, batch)
            self.below = None if below is None else self.below
        else:
            first, seq = self.length, positions.shape[1 if positions.ndim == 3 else -1]
            if counted and self.counted:
                self._positions = positions.device
            else:
                self._positions = buffers.joined_positions(self.positions, positions)
                self.counted = False
            self.padding_mask = buffers.joined_masks(self.padding_mask, first, padding_mask, seq)
            self._length, self.below = first + seq, below
            if self.shards is not None:
                self.reads_shards = False
                self._hold(self.shards.kept(first, seq, positions.device), first)
        self.begins, self.is_empty = self.is_empty, False

    def _write(
        self, size: int, positions: Tensor | Coordinates, real: Tensor | None, batch: int | None
    ) -> None:
        seq, said = positions.shape[-1], positions if real is None else real
        batch = batch or (len(said) if said.ndim == 2 else 1)
        if self.is_empty and (self.positions is None or self.positions.shape[0] != batch):
            made = buffers.empty_row(batch, size, said.device)
            self._length, self._positions, self.padding_mask = made
        row = cast("buffers.Row", (self._length, self.positions, self.padding_mask))
        if row[0].is_cpu and may_look(row[0]) and self.length + seq > size:
            raise ValueError(
                f"{seq} tokens come to a cache that holds {self.length} of at most {size}."
            )
        self.writing = buffers.written(row, cast(Tensor, positions), real)

    def read(
        self,
        positions: Int64[Tensor, "*batch seq"],
        padding_mask: Bool[Tensor, "batch seq"] | None,
        held: Int64[Tensor, "local"],
        *,
        below: int | None = None,
    ) -> None:
        """Record a whole prompt, of which this device reads the tokens at ``held``; −1 for none."""
        if self.shards is None or not self.is_empty:
            raise ValueError(
                f"A prompt is cut among devices, and the cache holds {self.length} tokens already "
                f"or keeps all keys. Build KeyValueCache(shards=KeyShards(group))."
            )
        self.extend(positions, padding_mask, below=below)
        self.reads_shards, self.held = True, None
        keeping = (held >= 0).nonzero().flatten()
        self._hold(keeping, 0, held[keeping])

    def _hold(self, keeping: Tensor, first: int, places: Tensor | None = None) -> None:
        self.keeping = keeping
        places = keeping + first if places is None else places
        self.held = places if self.held is None else torch.cat([self.held, places])

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens, as when guessed ones are rejected."""
        if not 0 <= (length := index(length)) <= self.length:
            raise ValueError(f"length is {length}; the cache holds {self.length} tokens.")
        self._take(slice(length), length)

    def keep(
        self, rows: Int64[Tensor, "kept"] | Bool[Tensor, "_"], *, last: int | None = None
    ) -> None:
        """Forget all tokens but some: to accept a path of a tree of drafts, or to evict a middle.

        Those that are left stay where they stood, in the order of the row, and the next token
        follows the furthest. An encoding that is not pairwise counts those that are left alone.

        Args:
            rows: Which tokens stay, alike in all rows of the batch, or a mask of them.
            last: Of how many tokens at the end ``rows`` speak, counted from the first of these;
                all before them stay. If not given, they speak of all tokens.

        Example:
            >>> cache = KeyValueCache()
            >>> cache.extend(torch.tensor([0, 1, 2, 2, 3, 3]), None)
            >>> cache.keep(torch.tensor([1, 3]), last=4)
            >>> cache.positions
            tensor([0, 1, 2, 3])
        """
        places = buffers.chosen_places(rows, self.length, last)
        self._take(places, len(places))

    def _take(self, places: slice | Tensor, length: int) -> None:
        """Forget all tokens but those at some places of the row."""
        own = places
        if self.held is not None:
            own, self.held = buffers.renumbered(self.held, places, self.length)
        for layer in self.layers:
            layer.keep(own) if isinstance(own, Tensor) else layer.crop(length)
        self.is_empty, self.below = not length, self.below if length else 0
        if isinstance(self._length, Tensor):
            rows = places if isinstance(places, Tensor) else None
            for kept in (self.positions, self.padding_mask):
                assert isinstance(kept, Tensor)
                buffers.moved_up(kept, rows, length, dim=1)
            self._length.fill_(length)
        elif self.is_empty:
            self.layers.clear()
            self._positions = self.padding_mask = self.held = None
            self._length, self.counted = 0, self.shards is None
        elif self.counted and isinstance(places, slice):
            self._length = self.below = length
        elif self.positions is not None:
            self._positions, self.counted = buffers.at_places(self.positions, places), False
            self._length = length
            if self.padding_mask is not None:
                self.padding_mask = self.padding_mask[:, places]

    def reorder(self, rows: Int64[Tensor, "rows"] | Bool[Tensor, "batch"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order, as a beam search does."""
        rows = rows.nonzero().flatten() if rows.dtype == torch.bool else rows
        fixed, kept = self.size is not None, self.positions
        for layer in self.layers:
            layer.reorder(rows)
        if self.padding_mask is not None:
            self.padding_mask = buffers.in_rows(self.padding_mask, rows, in_place=fixed)
        if kept is not None and (fixed or (kept.ndim > 1 and kept.shape[0] > 1)):
            self._positions = buffers.in_rows(kept, rows, in_place=fixed)

    def repeat(self, n: int) -> None:
        """Give each row ``n`` copies of itself, side by side: one prompt, n answers."""
        check_whole(n=n)
        keys = self.layers[0].rows[0]
        self.reorder(consecutive(len(keys), device=keys.device).repeat_interleave(n))
