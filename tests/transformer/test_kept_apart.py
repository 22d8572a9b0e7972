"""What a cache keeps is its own: no tensor that a caller writes to, no buffer of another cache."""

import copy

import pytest
import torch

from posenc import ALiBi, CoPE, Positional, Rotary, T5Bias
from posenc.transformer import Encoder, KeyValueCache, LayerCache

ENCODINGS = {
    "none": Positional(),
    "rotary": Positional(queries_keys=Rotary(4)),
    "alibi": Positional(scores=ALiBi(4)),
    "t5": Positional(scores=T5Bias(4)),
    "cope": Positional(scores=CoPE(4, 4, max_positions=3)),
}
STEPS = 5


@pytest.fixture(scope="module", params=ENCODINGS)
def encoder(request):
    torch.manual_seed(0)
    return Encoder(16, 4, 2, positional=ENCODINGS[request.param], is_causal=True).eval()


@pytest.fixture(scope="module")
def x():
    return torch.randn(2, STEPS, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("size", [None, 8])
@torch.no_grad()
def test_positions_that_are_counted_on_in_place(encoder, x, size):
    cache, here, steps = KeyValueCache(size), torch.zeros(2, 1, dtype=torch.int64), []
    for step in range(STEPS):
        steps.append(encoder(x[:, step : step + 1], here, cache=cache))
        here += 1
    torch.testing.assert_close(torch.cat(steps, 1), encoder(x))


@pytest.mark.parametrize("size", [None, 8])
@torch.no_grad()
def test_two_answers_to_one_prompt(encoder, x, size):
    prompt, one, other = x[:, :3], x[:, 3:4], x[:, 4:]
    cache = KeyValueCache(size)
    encoder(prompt, cache=cache)
    fork = copy.copy(cache)
    for tokens, answer in ((one, cache), (other, fork), (other, cache), (one, fork)):
        got = encoder(tokens, cache=answer)
    torch.testing.assert_close(got, encoder(torch.cat((prompt, other, one), 1))[:, -1:])
    assert cache.length == fork.length == 5


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
