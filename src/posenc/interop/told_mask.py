"""The masks of ``transformers``, told in a few numbers where they are usually drawn as matrices."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from posenc.guards import may_look

NAME = "posenc"


@dataclass(frozen=True, eq=False)
class ToldMask:
    """Which keys each query may see, without the matrix of queries × keys.

    A model hands it on to its attention, and must do nothing else with it.
    """

    q_len: int  # number of queries
    k_len: int  # number of keys
    first_query: int = 0  # where the first query stands
    first_key: int = 0  # where the first key stands
    is_causal: bool = False  # whether later keys are hidden
    window: int | None = None  # how many positions a query sees to each side, its own among them
    padding: Tensor | None = None  # ``[batch, k_len]``, true where a key is real; ``None``: all are
    # ``[batch, q_len]``: the document, or the chunk, of each query
    q_documents: Tensor | None = None
    documents: Tensor | None = None  # ``[batch, k_len]``: that of each key
    # what layers that share it need not compute each anew
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    ndim = 4  # that of the matrix it stands for

    def to(self, *_: Any, **__: Any) -> "ToldMask":
        """Itself: it has no dtype, and lies where the model is."""
        return self

    def contiguous(self) -> "ToldMask":
        """Itself."""
        return self

    @property
    def in_step(self) -> bool:
        """Whether the queries are the last of the keys."""
        return self.first_query + self.q_len == self.first_key + self.k_len

    @property
    def is_last_alone(self) -> bool:
        """Whether there is one query, the last token."""
        return self.q_len == 1 and self.in_step

    def seen_by_last(self) -> "ToldMask":
        """Without the keys that stand after the last query, as an empty static cache has them."""
        end = self.first_query + self.q_len - self.first_key
        if not self.is_causal or not 0 < end < self.k_len:
            return self
        return replace(
            self,
            k_len=end,
            padding=None if self.padding is None else self.padding[:, :end],
            documents=None if self.documents is None else self.documents[:, :end],
        )

    def positions(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Where queries and keys stand, one after the other."""
        queries, keys = (torch.arange(n, device=device) for n in (self.q_len, self.k_len))
        return queries + self.first_query, keys + self.first_key

    def has_holes(self) -> bool:
        """Whether padding stands between real keys."""
        if self.padding is None:
            return False
        begins = self.padding[:, 1:] & ~self.padding[:, :-1]
        return bool((begins.sum(1) + self.padding[:, 0] > 1).any())

    def keywords(self, device: torch.device) -> dict[str, Any]:
        """What ``posenc.attention`` is to be told."""
        # The last token alone sees all, and needs no comparison of places.
        told: dict[str, Any] = {"is_causal": self.is_causal and not self.is_last_alone}
        if self.window is not None:
            told["window"] = self.window
        placed = not self.in_step and (self.is_causal or self.window is not None)
        if placed:
            told["q_positions"], told["k_positions"] = self.positions(device)
        if self.documents is not None:
            told["document_ids"] = self.documents
            if placed or not self.in_step:
                told["q_document_ids"] = self.q_documents
        if self.padding is not None:
            told["padding_mask"] = self.padding
            if placed or not self.is_causal:
                # In cross-attention the queries are other tokens, so nothing is known of them.
                told["q_padding_mask"] = self.padding.new_ones(len(self.padding), self.q_len)
        return told

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"A told mask was given to {getattr(function, '__name__', '')}. With "
            f"attn_implementation='posenc' masks are no tensors; this model computes with its mask."
        )


# Told from transformers' mask functions -----------------------------------------------------------


def told_or_drawn(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Tensor] | None = None,
    attention_mask: Tensor | ToldMask | None = None,
    **others: Any,
) -> ToldMask | Tensor:
    """A mask as ``transformers`` asks its mask interface for one.

    A ``ToldMask`` where it is causal, bidirectional, windowed, chunked, padded or packed. Other
    masks, and every mask inside a graph, are drawn: boolean, queries × keys; for MPT, in whose
    booleans true hides a key, as numbers.
    """
    from transformers.masking_utils import causal_mask_function, eager_mask, sdpa_mask

    if isinstance(attention_mask, ToldMask):  # generation made it before it called the model
        return attention_mask
    function: Any = causal_mask_function if mask_function is None else mask_function
    places = q_length, kv_length, q_offset, kv_offset
    looked_at = not torch.compiler.is_compiling() and _are_known(places)
    rules = _rules(function) if looked_at else None
    if rules is not None:
        sizes = int(q_length), int(kv_length), int(q_offset), int(kv_offset)
        return _told(batch_size, *sizes, rules, attention_mask)
    never: dict[str, Any] = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    draw = eager_mask if getattr(others.get("config"), "model_type", "") == "mpt" else sdpa_mask
    return draw(  # type: ignore[return-value]
        batch_size, *places, function, attention_mask, **others | never
    )


def _are_known(places: tuple[Any, ...]) -> bool:
    return all(isinstance(n, int) or (isinstance(n, Tensor) and may_look(n)) for n in places)


@dataclass
class _Rules:
    """What a mask function says."""

    is_causal: bool = False
    window: int | None = None
    chunk: int | None = None
    left_padding: Tensor | None = None
    packed: Tensor | None = None


def _rules(function: Callable[..., Tensor]) -> _Rules | None:
    """What a mask function of ``transformers`` says; ``None`` where it may be any."""
    found = _Rules()
    one_sided = remapped = False
    codes = _codes()
    for part in _conjuncts(function):
        kind = codes.get(getattr(part, "__code__", None))
        if kind == "causal":
            found.is_causal = True
        elif kind == "earlier":
            one_sided, found.window = True, _bound(part, "sliding_window")
        elif kind == "around":  # it counts the distance, we the positions with the query's own
            found.window = _bound(part, "sliding_window") + 1
        elif kind == "chunk":
            found.chunk = _bound(part, "chunk_size")
            found.left_padding = _bound(part, "left_padding")
        elif kind == "packed":
            found.packed = _bound(part, "packed_sequence_mask")
        elif kind == "remapped":  # inside a document its positions rise by one, as rows do
            remapped = True
            inner = _rules(_bound(part, "mask_function"))
            if inner is None or inner.chunk is not None:
                return None
            found.is_causal, found.window = inner.is_causal, inner.window
        elif kind != "all":
            return None
    if (one_sided and not found.is_causal) or (remapped and found.packed is None):
        return None
    return None if found.chunk is not None and found.packed is not None else found


def _conjuncts(function: Any) -> Iterator[Any]:
    """The mask functions that must all say yes."""
    if _codes().get(getattr(function, "__code__", None)) == "and":
        for part in _bound(function, "mask_functions"):
            yield from _conjuncts(part)
    else:
        yield function


def _bound(function: Any, name: str) -> Any:
    """What a function has kept under a name from where it was made."""
    return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents


@cache
def _codes() -> dict[Any, str]:
    """The code of each mask function that is known: equal code and bounds mean equal masks."""
    from transformers import masking_utils as masks

    some: Any = torch.zeros(1, 1)
    made = {
        "and": masks.and_masks(),
        "causal": masks.causal_mask_function,
        "all": masks.bidirectional_mask_function,
        "earlier": masks.sliding_window_overlay(1),
        "around": masks.sliding_window_bidirectional_overlay(1),
        "chunk": masks.chunked_overlay(1, some),
        "packed": masks.packed_sequence_mask_function(some),
        "remapped": masks.remap_positions_for_packed_sequence(masks.causal_mask_function, some),
    }
    return {function.__code__: kind for kind, function in made.items()}


def _told(
    batch: int,
    q_len: int,
    k_len: int,
    first_query: int,
    first_key: int,
    rules: _Rules,
    attention_mask: Tensor | None,
) -> ToldMask:
    window = rules.window
    if window is not None and rules.is_causal and window > first_query + q_len - 1 - first_key:
        window = None  # it reaches past all keys
    documents = q_documents = None
    if rules.packed is not None:
        documents = q_documents = rules.packed.expand(batch, -1)
    elif rules.chunk is not None:
        assert rules.left_padding is not None
        q_documents, documents = (
            (torch.arange(start, start + count, device=rules.left_padding.device)
             - rules.left_padding.view(-1, 1)).div(rules.chunk, rounding_mode="floor")
            .expand(batch, -1)
            for start, count in ((first_query, q_len), (first_key, k_len))
        )  # fmt: skip
    return ToldMask(
        q_len,
        k_len,
        first_query,
        first_key,
        rules.is_causal,
        window,
        _padding(attention_mask, batch, first_key, k_len),
        q_documents,
        documents,
    )


def _padding(mask: Tensor | None, batch: int, first: int, count: int) -> Tensor | None:
    """True where a key is real; ``None`` where all are."""
    if mask is None:
        return None
    real = mask.bool()
    missing = first + count - real.shape[-1]
    real = torch.nn.functional.pad(real, (0, max(0, missing)))[:, first : first + count]
    return None if bool(real.all()) else real.expand(batch, -1)
