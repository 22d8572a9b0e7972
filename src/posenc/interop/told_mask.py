"""The masks of ``transformers``, told in a few numbers where they are usually drawn as matrices."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
    ndim = 4  # that of the matrix it stands for

    def to(self, *_: Any, **__: Any) -> "ToldMask":
        """Itself: it has no dtype, and lies where the model is."""
        return self

    contiguous = to

    @property
    def in_step(self) -> bool:
        """Whether the queries are the last of the keys."""
        return self.first_query + self.q_len == self.first_key + self.k_len

    def seen_by_last(self) -> "ToldMask":
        """Without the keys that stand after the last query, as an empty static cache has them."""
        end = self.first_query + self.q_len - self.first_key
        if not self.is_causal or not 0 < end < self.k_len:
            return self
        kept = {"padding": self.padding, "documents": self.documents}
        rows = {name: None if x is None else x[:, :end] for name, x in kept.items()}
        return replace(self, k_len=end, **rows)

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
        last_alone = self.q_len == 1 and self.in_step  # it sees all, and places are not compared
        told: dict[str, Any] = {"is_causal": self.is_causal and not last_alone}
        if self.window is not None:
            told["window"] = self.window
        placed = not self.in_step and (self.is_causal or self.window is not None)
        if placed:
            told["q_positions"], told["k_positions"] = self.positions(device)
        if self.documents is not None:
            told["document_ids"] = self.documents
            if not self.in_step:
                told["q_document_ids"] = self.q_documents
        if self.padding is not None:
            told["padding_mask"] = self.padding
            if placed or not self.is_causal:
                # In cross-attention the queries are other tokens, so nothing is known of them.
                told["q_padding_mask"] = self.padding.new_ones(len(self.padding), self.q_len)
        return told

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any, **__: Any) -> Any:
        name = getattr(function, "__name__", "A function")
        raise TypeError(f"{name} got a ToldMask: with 'posenc' attention, masks are no tensors.")


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
    known = all(isinstance(n, int) or (isinstance(n, Tensor) and may_look(n)) for n in places)
    if known and not torch.compiler.is_compiling() and (rules := _rules(function)) is not None:
        bare = ToldMask(int(q_length), int(kv_length), int(q_offset), int(kv_offset))
        return _told(batch_size, bare, rules, attention_mask)
    never: dict[str, Any] = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    draw = eager_mask if getattr(others.get("config"), "model_type", "") == "mpt" else sdpa_mask
    return draw(batch_size, *places, function, attention_mask, **others | never)  # type: ignore[return-value]


Rules = dict[str, Mapping[str, Any]]
"""The kinds of mask functions that must all say yes, and what each was made with."""


def _rules(function: Callable[..., Tensor]) -> Rules | None:
    """What a mask function of ``transformers`` says; ``None`` where it may be any."""
    codes, found = _codes(), Rules()
    for part in _conjuncts(function):
        kind = codes.get(getattr(part, "__code__", None))
        if kind is None:
            return None
        found[kind] = _bound(part)
    if "remapped" in found:  # inside a document its positions rise by one, as rows do
        inner = _rules(found.pop("remapped")["mask_function"])
        if inner is None or "chunk" in inner or "packed" not in found:
            return None
        found |= inner
    any_other = ("earlier" in found and "causal" not in found) or {"chunk", "packed"} <= {*found}
    return None if any_other else found


def _conjuncts(function: Any) -> Iterator[Any]:
    """The mask functions that must all say yes."""
    if _codes().get(getattr(function, "__code__", None)) != "and":
        yield function
        return
    for part in _bound(function)["mask_functions"]:
        yield from _conjuncts(part)


def _bound(function: Any) -> Mapping[str, Any]:
    """What a function has kept from where it was made, by name."""
    cells = function.__closure__ or ()
    return dict(zip(function.__code__.co_freevars, (c.cell_contents for c in cells), strict=True))


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


def _told(batch: int, bare: ToldMask, rules: Rules, attention_mask: Tensor | None) -> ToldMask:
    """The mask of these queries and keys."""
    window, is_causal = None, "causal" in rules
    if "earlier" in rules:
        window = rules["earlier"]["sliding_window"]
    elif "around" in rules:  # it counts the distance, we the positions with the query's own
        window = rules["around"]["sliding_window"] + 1
    last = bare.first_query + bare.q_len - 1
    if window is not None and is_causal and window > last - bare.first_key:
        window = None  # it reaches past all keys
    documents = q_documents = None
    if "packed" in rules:
        documents = q_documents = rules["packed"]["packed_sequence_mask"].expand(batch, -1)
    elif "chunk" in rules:
        size, begin = rules["chunk"]["chunk_size"], rules["chunk"]["left_padding"].view(-1, 1)
        q_documents, documents = (
            (x - begin).div(size, rounding_mode="floor").expand(batch, -1)
            for x in bare.positions(begin.device)
        )
    return replace(
        bare,
        is_causal=is_causal,
        window=window,
        padding=_padding(attention_mask, batch, bare.first_key, bare.k_len),
        q_documents=q_documents,
        documents=documents,
    )


def _padding(mask: Tensor | None, batch: int, first: int, count: int) -> Tensor | None:
    """True where a key is real; ``None`` where all are."""
    if mask is None:
        return None
    real = mask.bool()
    missing = first + count - real.shape[-1]
    real = torch.nn.functional.pad(real, (0, max(0, missing)))[:, first : first + count]
    return None if bool(real.all()) else real.expand(batch, -1)
