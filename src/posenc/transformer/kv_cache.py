"""What decoding keeps: encoded keys, values, and where the tokens behind them stand."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.positions import consecutive


class LayerCache:
    """Encoded keys and values of one attention layer, in buffers that double when they are full.

    What encodings of scores read in the hidden state of a key is kept beside it.

    While gradients are recorded nothing is written in place: the tokens are joined to new tensors,
    so decode under ``torch.no_grad`` or ``torch.inference_mode``.

    Example:
        >>> cache = LayerCache()
        >>> keys, values = cache.append(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
        >>> keys, values = cache.append(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
        >>> keys.shape, cache.length
        (torch.Size([1, 2, 4, 4]), 4)
    """

    def __init__(self) -> None:
        self.length = 0
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.features: list[Tensor] = []

    def append(
        self,
        keys: Float[Tensor, "batch kv_heads new head_dim"],
        values: Float[Tensor, "batch kv_heads new head_dim"],
    ) -> tuple[
        Float[Tensor, "batch kv_heads length head_dim"],
        Float[Tensor, "batch kv_heads length head_dim"],
    ]:
        """Keep these too, and give all that are kept.

        Raises:
            ValueError: Batch, heads or width are not those of the tokens that are kept.
        """
        _check_like(keys, self.keys)
        self.keys = _joined(self.keys, self.length, keys)
        self.values = _joined(self.values, self.length, values)
        self.length += keys.shape[-2]
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def append_features(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Keep what encodings read in the hidden state of the tokens that were just appended.

        Args:
            features: ``[batch, new, width]`` for each of them, always in the same order.

        Returns:
            ``[batch, length, width]`` for each: those of all tokens that are kept.
        """
        before = self.length - features[0].shape[-2]
        kept = self.features or [None] * len(features)
        self.features = [
            _joined(old, before, new.unsqueeze(1)) for old, new in zip(kept, features, strict=True)
        ]
        return [each[:, 0, : self.length] for each in self.features]

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        self.length = min(self.length, length)
        if not self.length:
            self.keys = self.values = None
            self.features = []

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]
        self.features = [each[rows] for each in self.features]

    @property
    def capacity(self) -> int:
        """Number of tokens that fit before the buffers grow."""
        return 0 if self.keys is None else self.keys.shape[-2]


class FixedLayerCache(LayerCache):
    """The same in buffers that never grow, so that a graph of one step serves every step.

    All places are given to attention, which hides those that hold no token yet.

    Args:
        owner: The cache whose ``writing`` says where new tokens go.
    """

    def __init__(self, owner: "KeyValueCache") -> None:
        super().__init__()
        self.owner = owner

    def append(
        self,
        keys: Float[Tensor, "batch kv_heads new head_dim"],
        values: Float[Tensor, "batch kv_heads new head_dim"],
    ) -> tuple[
        Float[Tensor, "batch kv_heads size head_dim"],
        Float[Tensor, "batch kv_heads size head_dim"],
    ]:
        """Write these at their places, and give all places.

        Raises:
            ValueError: Batch, heads or width are not those of the tokens that are kept.
        """
        _check_like(keys, self.keys)
        size, writing = self.owner.size, self.owner.writing
        assert size is not None
        assert writing is not None
        if self.keys is None or self.values is None:
            self.keys, self.values = (
                x.new_zeros(*x.shape[:2], size, x.shape[-1]) for x in (keys, values)
            )
        self.keys.index_copy_(2, writing, keys.to(self.keys.dtype))
        self.values.index_copy_(2, writing, values.to(self.values.dtype))
        return self.keys, self.values

    def append_features(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Write these at the places of their tokens, and give all places."""
        size, writing = self.owner.size, self.owner.writing
        assert size is not None
        assert writing is not None
        if not self.features:
            self.features = [x.new_zeros(len(x), 1, size, x.shape[-1]) for x in features]
        for kept, new in zip(self.features, features, strict=True):
            kept.index_copy_(2, writing, new.unsqueeze(1).to(kept.dtype))
        return [each[:, 0] for each in self.features]

    def crop(self, length: int) -> None:
        """Nothing to forget: what stands past the length of the cache is hidden."""

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows that ``rows`` name; in place where there are as many."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = _in_rows(self.keys, rows), _in_rows(self.values, rows)
        self.features = [_in_rows(each, rows) for each in self.features]


class KeyValueCache:
    """Everything that an encoder keeps between the steps of decoding.

    Keys are kept *encoded*, so a step encodes its own tokens and no others. Positions and padding
    are those of all tokens so far, one record for all layers, and each row knows the position of
    its next token, so ``encoder(x_new, cache=cache)`` is all that a step needs.

    Args:
        size: For decoding under ``torch.compile``: the largest number of tokens. All buffers have
            that length from the first call on and are written in place, so that one graph serves
            every step. ``None``: buffers grow.

    Attributes:
        length: Number of tokens that are kept, padding included.
        layers: One ``LayerCache`` an attention layer, made when the layer first runs.
        positions: ``[seq]`` or ``[batch, seq]``: where the cached tokens stand.
        padding_mask: ``[batch, seq]``, true where a cached token is real; ``None``: all are.
        next_position: ``[]`` or ``[batch]``: one past the furthest real token of each row.
        below: A bound that no position reaches, if it is known without looking at the values.
        writing: Which places the tokens of this step take, if the size is fixed.

    Raises:
        ValueError: ``size`` is not positive, or more tokens come than it has places.

    Example:
        >>> cache = KeyValueCache()
        >>> cache.extend(torch.arange(5), None, below=5)
        >>> cache.length, cache.next_position
        (5, tensor(5))
        >>> cache.crop(3)
        >>> cache
        KeyValueCache(length=3, layers=0)
    """

    def __init__(self, size: int | None = None) -> None:
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise ValueError(f"size is {size!r}; it must be a number of tokens from 1 on, or None.")
        self.size = size
        self.layers: list[LayerCache] = []
        self.positions: Tensor | None = None
        self.padding_mask: Tensor | None = None
        self.next_position: Tensor | None = None
        self.below: int | None = 0
        self.writing: Tensor | None = None
        self._length: int | Tensor = 0

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
        return self.length if self.size is None else self.size

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept yet."""
        return self.next_position is None

    def layer(self, index: int) -> LayerCache:
        """The part of one attention layer."""
        while len(self.layers) <= index:
            self.layers.append(LayerCache() if self.size is None else FixedLayerCache(self))
        return self.layers[index]

    def extend(
        self,
        positions: Int64[Tensor, "*batch new"],
        padding_mask: Bool[Tensor, "batch new"] | None,
        *,
        below: int | None = None,
        batch: int | None = None,
    ) -> None:
        """Record where new tokens stand, and which of them are real.

        Args:
            positions: Where they stand.
            padding_mask: Which are real; all if not given.
            below: A bound that no position reaches, if one is known without a look.
            batch: Rows of the batch, where the size is fixed and ``positions`` are those of all.

        Raises:
            ValueError: Grid positions meet others, or the places of a fixed size do not suffice.
        """
        if self.size is not None:
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
        seq = positions.shape[axis]
        self.padding_mask = _joined_masks(self.padding_mask, self.length, padding_mask, seq)
        self.next_position = _one_past(positions, padding_mask, self.next_position)
        self.positions = _joined_rows(self.positions, positions, axis)
        self._length = self.length + seq
        self.below = below

    def _write(self, positions: Tensor, padding_mask: Tensor | None, batch: int | None) -> None:
        assert self.size is not None
        seq = positions.shape[-1]
        if positions.ndim > 2:
            raise ValueError("Grid positions and a cache of fixed size were given. Let it grow.")
        if self.positions is None:
            rows = batch if batch is not None else (len(positions) if positions.ndim == 2 else 1)
            self._allocate(rows, positions.device)
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
        self.writing = self._length + consecutive(seq, device=positions.device)
        self.positions.index_copy_(1, self.writing, positions)  # type: ignore[union-attr]
        self.padding_mask.index_copy_(1, self.writing, real)  # type: ignore[union-attr]
        self.next_position.copy_(_one_past(positions, real, self.next_position))  # type: ignore[union-attr]
        self._length.add_(seq)

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
            ValueError: ``length`` is negative, or more than there are.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"length is {length}; the cache holds {self.length} tokens.")
        for layer in self.layers:
            layer.crop(length)
        if self.positions is None:
            return
        if isinstance(self._length, Tensor):
            assert self.padding_mask is not None
            assert self.next_position is not None
            self._length.fill_(length)
            self.padding_mask[:, length:] = False
            self.next_position.copy_(_one_past(self.positions, self.padding_mask, None))
            return
        self._length = length
        axis = 1 if self.positions.ndim == 3 else self.positions.ndim - 1
        self.positions = self.positions.narrow(axis, 0, length)
        if self.padding_mask is not None:
            self.padding_mask = self.padding_mask[:, :length]
        if not length:
            self.positions = self.padding_mask = self.next_position = None
            self.below = 0
        else:
            self.next_position = _one_past(self.positions, self.padding_mask, None)

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order, as a beam search does.

        Example:
            >>> cache = KeyValueCache()
            >>> cache.extend(torch.tensor([[0, 1], [5, 6]]), None)
            >>> cache.reorder(torch.tensor([1, 1]))
            >>> cache.positions
            tensor([[5, 6],
                    [5, 6]])
        """
        for layer in self.layers:
            layer.reorder(rows)
        if isinstance(self._length, Tensor):
            self.positions = _in_rows(self.positions, rows)  # type: ignore[arg-type]
            self.padding_mask = _in_rows(self.padding_mask, rows)  # type: ignore[arg-type]
            self.next_position = _in_rows(self.next_position, rows)  # type: ignore[arg-type]
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
        if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not kept:
            raise ValueError(
                f"n is {n!r} and the cache holds {len(kept)} layers; repeat a filled cache 1 time "
                f"or more."
            )
        rows = torch.arange(len(kept[0]), device=kept[0].device)
        self.reorder(rows.repeat_interleave(n))

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Put everything back as it was if a step fails, so that a refused step leaves no trace."""
        records = {
            name: value.clone() if self.size is not None and isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        lengths = [layer.length for layer in self.layers]
        try:
            yield
        except BaseException:
            vars(self).update(records)
            for index, layer in enumerate(self.layers):
                layer.crop(lengths[index] if index < len(lengths) else 0)
            raise


def _check_like(keys: Tensor, kept: Tensor | None) -> None:
    if kept is not None and _but_length(keys) != _but_length(kept):
        raise ValueError(
            f"keys have [batch, kv_heads, head_dim] = {_but_length(keys)}; the cache holds "
            f"{_but_length(kept)}. Use one cache for one batch of one model."
        )


def _but_length(keys: Tensor) -> tuple[int, ...]:
    return (*keys.shape[:-2], keys.shape[-1])


def _in_rows(kept: Tensor, rows: Tensor) -> Tensor:
    """These rows of the batch, in the same memory where there are as many as before."""
    taken = kept[rows]
    return kept.copy_(taken) if taken.shape == kept.shape else taken


def _joined(kept: Tensor | None, length: int, new: Tensor) -> Tensor:
    if kept is None:
        return new
    frozen = kept.is_inference() and not torch.is_inference_mode_enabled()
    if torch.is_grad_enabled() or frozen:
        return torch.cat([kept[:, :, :length], new], dim=-2)
    needed = length + new.shape[-2]
    if needed > kept.shape[-2]:
        larger = kept.new_empty(*kept.shape[:-2], max(needed, 2 * length), kept.shape[-1])
        larger[:, :, :length] = kept[:, :, :length]
        kept = larger
    kept[:, :, length:needed] = new
    return kept


def _joined_rows(kept: Tensor | None, new: Tensor, axis: int) -> Tensor:
    if kept is None:
        return new
    rows = torch.broadcast_shapes(kept.shape[:-1], new.shape[:-1]) if axis == -1 else None
    if rows is not None:
        kept, new = kept.expand(*rows, -1), new.expand(*rows, -1)
    return torch.cat([kept, new], dim=axis)


def _joined_masks(kept: Tensor | None, length: int, new: Tensor | None, seq: int) -> Tensor | None:
    if kept is None:
        if new is None:
            return None
        kept = new.new_ones(new.shape[0], length)
    elif new is None:
        new = kept.new_ones(kept.shape[0], seq)
    return torch.cat([kept, new], dim=-1)


def _one_past(positions: Tensor, padding_mask: Tensor | None, so_far: Tensor | None) -> Tensor:
    if positions.ndim == 3:
        positions = positions.amax(-1)
    if padding_mask is not None:
        positions = positions.where(padding_mask, -1)
    past = positions.amax(-1) + 1
    return past if so_far is None else torch.maximum(past, so_far)
