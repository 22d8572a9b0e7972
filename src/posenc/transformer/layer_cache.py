"""Encoded keys and values of one attention layer: in buffers that grow, that stay, or cut."""

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.guards import backward_pass, demand, graph_looks, may_look
from posenc.positions import checked
from posenc.transformer.identity import Maker, same_maker

if TYPE_CHECKING:
    from posenc.transformer.kv_cache import KeyValueCache


class LayerCache:
    """Encoded keys and values of one attention layer, in buffers that double when they are full.

    What encodings of scores read in the hidden state of a key is kept beside it.

    While gradients are recorded nothing is written in place: the tokens are joined to new tensors,
    so decode under ``torch.no_grad`` or ``torch.inference_mode``.

    Attributes:
        maker: The attention layer whose keys are kept, where one gave them. It refuses keys of
            another layer, and of the same one with weights that were written to since.
        begun_in: The backward pass inside which the first tokens came, -1 outside of any; ``None``
            where there are none yet.

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
        self.maker: Maker | None = None
        self.begun_in: int | None = None

    def serve(self, maker: Maker) -> None:
        """Note which attention layer appends keys.

        Raises:
            ValueError: The keys that are kept are not its own, or it had other weights then.
        """
        self.maker = same_maker(self.maker, maker, "attention layer")

    def hand_over(self) -> None:
        """Let the next attention layer go on from these keys, whoever made them."""
        self.maker = None

    def __copy__(self) -> "LayerCache":
        # Two copies would write their tokens to the same places of one buffer.
        return deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = type(self).__new__(type(self))
        for x in (self.keys, self.values, *self.features):
            if x is not None and not x.is_leaf:  # which torch does not copy
                memo[id(x)] = x.clone()
        vars(copied).update(deepcopy(vars(self), memo))
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "begun_in" not in state:  # of a file that was written before this was noted
            self.begun_in = None if self.keys is None else -1

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
            TypeError: They are wider than the numbers that are kept, and would be rounded to these.
            ValueError: Batch, heads or width are not those of the tokens that are kept, or keys
                and values are not of the same tokens.
        """
        self._check_tokens(keys, values)
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
        self._check_features(features, kept)
        self.features = [
            _joined(old, before, new.unsqueeze(1)) for old, new in zip(kept, features, strict=True)
        ]
        return [each[:, 0, : self.length] for each in self.features]

    def _check_tokens(self, keys: Tensor, values: Tensor) -> None:
        """Refuse what torch would broadcast or round to what is kept."""
        if keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                f"keys have shape {tuple(keys.shape)} and values {tuple(values.shape)}. Give one "
                f"of each a token, [batch, kv_heads, new, head_dim]."
            )
        _check_like("keys", keys, self.keys)
        _check_like("values", values, self.values)

    def _check_features(self, features: Sequence[Tensor], kept: Sequence[Tensor | None]) -> None:
        for old, new in zip(kept, features, strict=True):
            if new.shape[:2] != features[0].shape[:2]:
                raise ValueError(
                    f"features have shapes {[tuple(each.shape) for each in features]}; they must "
                    f"be [batch, new, width] of the same tokens."
                )
            _check_like("features", new.unsqueeze(1), old)

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens.

        Raises:
            ValueError: ``length`` is no whole number from 0 on.
        """
        check_whole(0, length=length)
        self.length = min(self.length, length)
        if not self.length:
            self.forget()

    def forget(self) -> None:
        """Forget all, as if nothing had been appended."""
        self.length, self.features = 0, []
        self.keys = self.values = self.maker = self.begun_in = None

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows of the batch that ``rows`` name, in that order.

        Raises:
            TypeError: ``rows`` are neither integers nor a mask.
            ValueError: They have several axes.
            IndexError: There is no such row.
        """
        rows = checked_batch_rows(rows)
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
        """Write these at their places, and give all places; raises as ``LayerCache.append``.

        Emptied buffers of another batch or dtype are left for new ones.
        """
        fit = _fits(keys, self.keys) and _fits(values, self.values)
        if not fit and self.owner.begins:
            self.keys = self.values = None
        self._check_tokens(keys, values)
        size, writing = self.owner.size, self.owner.writing
        assert size is not None
        assert writing is not None
        if self.keys is None or self.values is None:
            self.keys, self.values = _empty_places(keys, size), _empty_places(values, size)
        self.keys.index_copy_(2, writing, keys.to(self.keys.dtype))
        self.values.index_copy_(2, writing, values.to(self.values.dtype))
        return self.keys, self.values

    def append_features(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Write these at the places of their tokens, and give all places."""
        size, writing = self.owner.size, self.owner.writing
        assert size is not None
        assert writing is not None
        fit = len(features) == len(self.features) and all(
            _fits(new.unsqueeze(1), kept) for new, kept in zip(features, self.features, strict=True)
        )
        if not fit and self.owner.begins:
            self.features = []
        self._check_features(features, self.features or [None] * len(features))
        if not self.features:
            self.features = [_empty_places(each.unsqueeze(1), size) for each in features]
        for kept, new in zip(self.features, features, strict=True):
            kept.index_copy_(2, writing, new.unsqueeze(1).to(kept.dtype))
        return [each[:, 0] for each in self.features]

    def crop(self, length: int) -> None:
        """Forget who made the keys where none are left; ``clear`` forgets the keys."""
        if not length:
            self.maker = self.begun_in = None

    def clear(self, places: slice) -> None:
        """Make what stands there zero: it is hidden, but 0 times what is not finite is NaN."""
        if places.stop <= places.start or self.keys is None or self.values is None:
            return
        self.keys, self.values = (_zeroed(x, places) for x in (self.keys, self.values))
        self.features = [each if each is None else _zeroed(each, places) for each in self.features]

    def reorder(self, rows: Int64[Tensor, "rows"]) -> None:
        """Keep the rows that ``rows`` name; in place where there are as many.

        Raises:
            TypeError: ``rows`` are neither integers nor a mask.
            ValueError: They have several axes.
            IndexError: There is no such row.
        """
        rows = checked_batch_rows(rows)
        if self.keys is not None and self.values is not None:
            self.keys, self.values = in_rows(self.keys, rows), in_rows(self.values, rows)
        self.features = [in_rows(each, rows) for each in self.features]


class CutLayerCache(LayerCache):
    """Encoded keys and values of the tokens that this device keeps.

    Args:
        owner: The cache whose ``keeping`` says which of the tokens of a pass these are.
    """

    def __init__(self, owner: "KeyValueCache") -> None:
        super().__init__()
        self.owner = owner

    def append(
        self,
        keys: Float[Tensor, "batch kv_heads new head_dim"],
        values: Float[Tensor, "batch kv_heads new head_dim"],
    ) -> tuple[
        Float[Tensor, "batch kv_heads own head_dim"],
        Float[Tensor, "batch kv_heads own head_dim"],
    ]:
        """Keep what this device does, and give all that it keeps.

        While a prompt is read that is cut among devices, its own keys are given back: each device
        holds others, and they meet elsewhere.
        """
        keeping = self.owner.keeping
        assert keeping is not None
        kept = super().append(keys.index_select(2, keeping), values.index_select(2, keeping))
        return (keys, values) if self.owner.reads_shards else kept


def refuse_in_backward(cache: "LayerCache | KeyValueCache") -> None:
    """Refuse to write to a cache what a backward pass computes anew.

    One whose first tokens come inside that pass, too, is made anew with them.

    Raises:
        RuntimeError: It is called inside a backward pass, and the cache was filled outside of that.
    """
    if torch.compiler.is_compiling():
        return
    within = backward_pass()
    if cache.begun_in is None:
        cache.begun_in = within
    elif within not in (-1, cache.begun_in):
        raise RuntimeError(
            "A cache that was filled before was given inside a backward pass, as where gradients "
            "are checkpointed: what is computed anew there would enter it twice. Leave the cache "
            "out there, or build it inside of what is computed anew."
        )


def _check_like(name: str, new: Tensor, kept: Tensor | None) -> None:
    if kept is None or _fits(new, kept):
        return
    if _but_length(new) != _but_length(kept):
        raise ValueError(
            f"{name} have [batch, kv_heads, head_dim] = {_but_length(new)}; the cache holds "
            f"{_but_length(kept)}. Use one cache for one batch of one model."
        )
    if new.device != kept.device:
        raise ValueError(
            f"{name} lie on {new.device}, and the cache on {kept.device}. Begin a cache anew where "
            f"a model is moved."
        )
    rounded = torch.promote_types(new.dtype, kept.dtype) != kept.dtype
    raise TypeError(
        f"{name} are {new.dtype}, and the cache holds {kept.dtype}"
        f"{', to which they would be rounded' if rounded else ''}. Begin a cache anew where a "
        f"model is cast, or autocast ends."
    )


def _fits(new: Tensor, kept: Tensor | None) -> bool:
    """Whether new keys can stand beside those that are kept; autocast may make narrower ones."""
    if kept is None:
        return True
    if _but_length(new) != _but_length(kept) or new.device != kept.device:
        return False
    if new.dtype == kept.dtype:
        return True
    narrower = torch.promote_types(new.dtype, kept.dtype) == kept.dtype != torch.float64
    return narrower and torch.is_autocast_enabled(new.device.type)


def _but_length(keys: Tensor) -> tuple[int, ...]:
    return (*keys.shape[:-2], keys.shape[-1])


def checked_batch_rows(rows: Tensor) -> Tensor:
    """Numbers of rows of a batch, counted from its beginning, or a mask of them.

    Raises:
        TypeError: They are neither integers nor a mask.
        ValueError: They have several axes.
        IndexError: One would count from the end.

    Example:
        >>> checked_batch_rows(torch.tensor([1, 0], dtype=torch.uint8))
        tensor([1, 0])
    """
    mask = torch.as_tensor(rows)
    # torch takes narrow numbers for a mask
    rows = mask if mask.dtype == torch.bool else checked(rows, "rows")
    if rows.ndim != 1:
        raise ValueError(f"rows have shape {tuple(rows.shape)}; name them in one row, [rows].")
    if rows.dtype == torch.bool:
        return rows
    if graph_looks(rows):
        demand((rows >= 0).all(), "rows would count from the end of the batch.")
    if rows.is_cpu and may_look(rows) and rows.numel() and int(rows.min()) < 0:
        raise IndexError(
            f"rows hold {int(rows.min())}, which would count from the end of the batch. Name rows "
            f"from 0 on."
        )
    return rows


def in_rows(kept: Tensor, rows: Tensor) -> Tensor:
    """These rows of the batch, in the same memory where there are as many as before."""
    taken = kept[rows]
    # What is written in place without gradients would have those of the rows that stood there.
    if taken.shape == kept.shape and not kept.requires_grad:
        return kept.copy_(taken)
    with torch.inference_mode(False):
        return taken.clone() if taken.is_inference() else taken


def _zeroed(kept: Tensor, places: slice) -> Tensor:
    """Zeros at these places; in a copy where a backward pass may want what is there."""
    kept = kept.clone() if kept.requires_grad else kept
    kept[:, :, places] = 0.0
    return kept


def _empty_places(like: Tensor, size: int) -> Tensor:
    """So many places of zeros, to be written in any mode."""
    with torch.inference_mode(False):
        return like.new_zeros(*like.shape[:2], size, like.shape[-1])


def _joined(kept: Tensor | None, length: int, new: Tensor) -> Tensor:
    if kept is None:
        return new.clone()  # whoever gave it may write to it again
    frozen = kept.is_inference() and not torch.is_inference_mode_enabled()
    if torch.is_grad_enabled() or frozen:
        return torch.cat([kept[:, :, :length], new], dim=-2)
    needed = length + new.shape[-2]
    # What is written where cropped tokens stood would have their gradients.
    if needed > kept.shape[-2] or kept.requires_grad:
        larger = kept.new_empty(*kept.shape[:-2], max(needed, 2 * length), kept.shape[-1])
        larger[:, :, :length] = kept[:, :, :length]
        kept = larger
    kept[:, :, length:needed] = new
    return kept
