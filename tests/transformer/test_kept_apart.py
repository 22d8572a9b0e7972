"""What a cache keeps is its own: no tensor that a caller writes to, no buffer of another cache."""

import copy

import pytest
import torch

from posenc import CoPE, Positional, Rotary, T5Bias
from posenc.transformer import Encoder, KeyValueCache, LayerCache

ENCODINGS = {
    "rotary and t5": lambda: Positional(queries_keys=Rotary(4), scores=T5Bias(4)),
    "cope": lambda: Positional(scores=CoPE(4, 4, max_positions=3)),
}
STEPS = 5


@pytest.fixture(params=ENCODINGS.values(), ids=ENCODINGS)
def encoder(request):
    return Encoder(16, 4, 2, positional=request.param(), is_causal=True).eval()


@pytest.mark.parametrize("size", [None, 8])
@torch.no_grad()
def test_positions_that_are_counted_on_in_place(encoder, size):
    x, steps = torch.randn(2, STEPS, 16), []
    cache, here = KeyValueCache(size), torch.zeros(2, 1, dtype=torch.int64)
    for step in range(STEPS):
        steps.append(encoder(x[:, step : step + 1], here, cache=cache))
        here += 1
    torch.testing.assert_close(torch.cat(steps, 1), encoder(x))


@pytest.mark.parametrize("size", [None, 8])
@torch.no_grad()
def test_two_answers_to_one_prompt(encoder, size):
    prompt, one, other = torch.randn(2, STEPS, 16).split([3, 1, 1], dim=1)
    cache = KeyValueCache(size)
    encoder(prompt, cache=cache)
    fork = copy.copy(cache)
    for tokens, answer in ((one, cache), (other, fork), (other, cache), (one, fork)):
        got = encoder(tokens, cache=answer)
    torch.testing.assert_close(got, encoder(torch.cat((prompt, other, one), 1))[:, -1:])
    assert cache.length == fork.length == STEPS


@torch.no_grad()
def test_two_copies_of_one_layer():
    cache, ones = LayerCache(), torch.ones(1, 1, 1, 1)
    for _ in range(3):
        cache.append(ones, ones)
    assert cache.capacity > cache.length  # so that both write to what is left
    fork = copy.copy(cache)
    keys, _ = cache.append(2 * ones, ones)
    fork.append(3 * ones, ones)
    assert keys.flatten().tolist() == [1, 1, 1, 2]
