"""What decoding keeps: encoded keys, values, and where the tokens behind them stand."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor


class LayerCache:
    """Encoded keys and values of one attention layer, in buffers that double when they are full.

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
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

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
        if self._keys is not None and _but_length(keys) != _but_length(self._keys):
            raise ValueError(
                f"keys have [batch, kv_heads, head_dim] = {_but_length(keys)}; the cache holds "
                f"{_but_length(self._keys)}. Use one cache for one batch of one model."
            )
        self._keys = _joined(self._keys, self.length, keys)
        self._values = _joined(self._values, self.length, values)
        self.length += keys.shape[-2]
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def cut(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        self.length = min(self.length, length)
        if not self.length:
            self._keys = self._values = None

    @property
    def capacity(self) -> int:
        """Number of tokens that fit before the buffers grow."""
        return 0 if self._keys is None else self._keys.shape[-2]


class KeyValueCache:
    """Everything that an encoder keeps between the steps of decoding.

    Keys are kept *encoded*, so a step encodes its own tokens and no others. Positions and padding
    are those of all tokens so far, one record for all layers, and each row knows the position of
    its next token, so ``encoder(x_new, cache=cache)`` is all that a step needs.

    Attributes:
        length: Number of tokens that are kept, padding included.
        layers: One ``LayerCache`` an attention layer, made when the layer first runs.
        positions: ``[seq]`` or ``[batch, seq]``: where the cached tokens stand.
        padding_mask: ``[batch, seq]``, true where a cached token is real; ``None``: all are.
        next_position: ``[]`` or ``[batch]``: one past the furthest real token of each row.
        below: A bound that no position reaches, if it is known without looking at the values.

    Example:
        >>> cache = KeyValueCache()
        >>> cache.extend(torch.arange(5), None, below=5)
        >>> cache.length, cache.next_position
        (5, tensor(5))
    """

    def __init__(self) -> None:
        self.length = 0
        self.layers: list[LayerCache] = []
        self.positions: Tensor | None = None
        self.padding_mask: Tensor | None = None
        self.next_position: Tensor | None = None
        self.below: int | None = 0

    def layer(self, index: int) -> LayerCache:
        """The part of one attention layer."""
        while len(self.layers) <= index:
            self.layers.append(LayerCache())
        return self.layers[index]

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Put everything back as it was if a step fails, so that a refused step leaves no trace."""
        records, lengths = dict(vars(self)), [layer.length for layer in self.layers]
        try:
            yield
        except BaseException:
            vars(self).update(records)
            for index, layer in enumerate(self.layers):
                layer.cut(lengths[index] if index < len(lengths) else 0)
            raise

    def extend(
        self,
        positions: Int64[Tensor, "*batch new"],
        padding_mask: Bool[Tensor, "batch new"] | None,
        *,
        below: int | None = None,
    ) -> None:
        """Record where new tokens stand, and which of them are real.

        Raises:
            ValueError: Grid positions meet plain ones.
        """
        axis = 1 if positions.ndim == 3 else -1
        if self.positions is not None and (positions.ndim == 3) != (self.positions.ndim == 3):
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}; the cache holds "
                f"{tuple(self.positions.shape)}. Pass grid positions [batch, seq, axes] with every "
                f"step, or with none."
            )
        self.padding_mask = _joined_masks(
            self.padding_mask, self.length, padding_mask, positions.shape[axis]
        )
        self.next_position = _one_past(positions, padding_mask, self.next_position)
        self.positions = _joined_rows(self.positions, positions, axis)
        self.length += positions.shape[axis]
        self.below = below


def _but_length(keys: Tensor) -> tuple[int, ...]:
    return (*keys.shape[:-2], keys.shape[-1])


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
