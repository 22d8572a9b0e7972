"""Masks that are told, held against those that transformers draws."""

import pytest
import torch
from transformers import masking_utils as masks

from posenc.interop.told_mask import ToldMask, told_or_drawn

PADDING = {
    "none": None,
    "left": torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]]).bool(),
    "right": torch.tensor([[1, 1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]]).bool(),
}
FUNCTIONS = {
    "causal": masks.causal_mask_function,
    "bidirectional": masks.bidirectional_mask_function,
    "windowed": masks.sliding_window_causal_mask_function(3),
    "around": masks.sliding_window_bidirectional_mask_function(2),
    "chunked": masks.chunked_causal_mask_function(3, torch.tensor([2, 0])),
}
PLACES = {  # queries, keys, where the first of each stands
    "prefill": (8, 8, 0, 0),
    "a step": (1, 8, 7, 0),
    "several": (3, 8, 5, 0),
    "an empty static cache": (4, 8, 0, 0),
    "a cache that has slid": (2, 5, 6, 3),
}
some = torch.zeros(2, 8, dtype=torch.int64)
ANY = {
    "any": lambda b, h, q, k: (q + k) % 2 == 0,
    "or": masks.or_masks(masks.causal_mask_function, masks.blockwise_overlay(some)),
    "one-sided": masks.sliding_window_overlay(3),
    "packed chunks": masks.packed_sequence_compatibility_function(
        FUNCTIONS["chunked"], torch.arange(8).expand(2, -1), some
    ),
}


def given(function, places, padding=None):
    q_len, k_len, first_query, first_key = places
    return {
        "batch_size": 2, "q_length": q_len, "kv_length": k_len, "q_offset": first_query,
        "kv_offset": first_key, "mask_function": function, "attention_mask": padding,
    }  # fmt: skip


def matrix(mask):
    """The matrix that a mask tells of."""
    assert isinstance(mask, ToldMask)
    queries, keys = mask.positions(torch.device("cpu"))
    distance = queries[:, None] - keys
    seen = (distance >= 0) if mask.is_causal else torch.ones_like(distance, dtype=torch.bool)
    if mask.window is not None:
        seen = seen & (distance.abs() < mask.window)
    seen = seen[None]
    if mask.padding is not None:
        seen = seen & mask.padding[:, None]
    if mask.documents is not None:
        seen = seen & (mask.q_documents[:, :, None] == mask.documents[:, None])
    return seen[:, None]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_told_masks_mean_what_drawn_ones_mean(name, places):
    for padding in PADDING.values():
        asked = given(FUNCTIONS[name], PLACES[places], padding)
        drawn = masks.sdpa_mask(**asked, allow_is_causal_skip=False)
        assert torch.equal(matrix(told_or_drawn(**asked)).expand_as(drawn), drawn)


@pytest.mark.parametrize("name", ["causal", "windowed"])
def test_packed_documents_are_told(name):
    packed = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2]] * 2)
    places = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 0]] * 2)
    function = masks.packed_sequence_compatibility_function(FUNCTIONS[name], places, packed)
    asked = given(function, PLACES["prefill"])
    drawn = masks.sdpa_mask(**asked, allow_is_causal_skip=False)
    assert torch.equal(matrix(told_or_drawn(**asked)), drawn)


@pytest.mark.parametrize("kind", ANY)
def test_what_may_be_any_mask_is_drawn(kind):
    asked = given(ANY[kind], PLACES["prefill"], PADDING["left"])
    assert torch.equal(told_or_drawn(**asked), masks.sdpa_mask(**asked, allow_is_causal_skip=False))


@pytest.mark.parametrize(("size", "window"), [(7, 7), (8, None), (9, None)])
def test_a_window_that_reaches_past_all_keys_is_none(size, window):
    function = masks.sliding_window_causal_mask_function(size)
    assert told_or_drawn(**given(function, (8, 8, 0, 0))).window == window


ROWS = {"11110": False, "01110": False, "11011": True, "10001": True, "00000": False}


@pytest.mark.parametrize("row", ROWS)
def test_holes_are_padding_between_real_keys(row):
    padding = torch.tensor([[c == "1" for c in row], [True] * 5])
    assert ToldMask(5, 5, padding=padding).has_holes() is ROWS[row]
