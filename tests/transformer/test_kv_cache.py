"""The cache keeps what it is given, in buffers that grow seldom."""

import pytest
import torch

from posenc import Learned, Positional, Sinusoidal
from posenc.transformer import Encoder, KeyValueCache, LayerCache


def test_it_gives_back_all_that_was_appended():
    keys, values = torch.randn(2, 3, 20, 4), torch.randn(2, 3, 20, 4)
    cache = LayerCache()
    for start, stop in ((0, 5), (5, 6), (6, 13), (13, 20)):
        got_keys, got_values = cache.append(keys[:, :, start:stop], values[:, :, start:stop])
        assert torch.equal(got_keys, keys[:, :, :stop])
        assert torch.equal(got_values, values[:, :, :stop])
    assert cache.length == 20


@torch.no_grad()
def test_a_thousand_steps_grow_it_a_dozen_times():
    cache, capacities = LayerCache(), set()
    for _ in range(1000):
        cache.append(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
        capacities.add(cache.capacity)
    assert len(capacities) <= 12
    assert cache.capacity < 2 * 1000


def test_it_never_writes_into_what_it_was_given():
    first = torch.zeros(1, 1, 2, 2)
    cache = LayerCache()
    cache.append(first, first)
    cache.append(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))
    assert first.eq(0).all()


def test_gradients_reach_cached_keys_whatever_is_appended_later():
    first = torch.randn(1, 1, 2, 2, requires_grad=True)
    new = torch.ones(1, 1, 1, 2)
    cache, used = LayerCache(), 0.0
    for keys in (first, new, new, new):
        used = used + cache.append(keys, keys)[0].square().sum()
    used.backward()
    assert torch.equal(first.grad, 4 * 2 * first)


def test_another_batch_is_refused():
    cache = LayerCache()
    cache.append(torch.zeros(2, 1, 3, 4), torch.zeros(2, 1, 3, 4))
    with pytest.raises(ValueError, match=r"= \(3, 1, 4\); the cache holds \(2, 1, 4\)"):
        cache.append(torch.zeros(3, 1, 1, 4), torch.zeros(3, 1, 1, 4))


def test_the_next_position_counts_real_tokens():
    cache = KeyValueCache()
    mask = torch.tensor([[False, False, True, True], [True, True, True, False]])
    cache.extend(torch.tensor([[0, 0, 0, 1], [0, 1, 2, 2]]), mask)
    assert cache.next_position.tolist() == [2, 3]
    cache.extend(torch.tensor([[2], [3]]), None)
    assert cache.next_position.tolist() == [3, 4]
    assert cache.length == 5
    assert cache.padding_mask.tolist() == [
        [False, False, True, True, True],
        [True, True, True, False, True],
    ]


def test_rows_alike_stay_one_row_until_they_differ():
    cache = KeyValueCache()
    cache.extend(torch.arange(3), None)
    assert cache.positions.shape == (3,)
    cache.extend(torch.tensor([[3], [7]]), None)
    assert cache.positions.tolist() == [[0, 1, 2, 3], [0, 1, 2, 7]]


def test_grid_positions_do_not_mix_with_plain_ones():
    cache = KeyValueCache()
    cache.extend(torch.zeros(1, 4, 2, dtype=torch.int64), None)
    assert cache.length == 4
    with pytest.raises(ValueError, match=r"shape \(4,\); the cache holds \(1, 4, 2\)"):
        cache.extend(torch.arange(4), None)


def causal_encoder(positional=None) -> Encoder:
    torch.manual_seed(0)
    return Encoder(
        16, 4, 2, positional=positional or Positional(Sinusoidal(16)), is_causal=True
    ).eval()


@pytest.mark.parametrize(
    ("positional", "wrong"),
    [(None, torch.zeros(2, 1, 16)), (Positional(Learned(16, 4)), torch.zeros(1, 2, 16))],
    ids=["another batch", "past the last position"],
)
@torch.no_grad()
def test_a_refused_step_leaves_no_trace(positional, wrong):
    encoder, x = causal_encoder(positional), torch.randn(1, 4, 16)
    cache = KeyValueCache()
    encoder(x[:, :3], cache=cache)
    with pytest.raises(ValueError, match=r"batch|Position 4 is outside"):
        encoder(wrong, cache=cache)
    assert cache.length == 3
    assert [layer.length for layer in cache.layers] == [3, 3]
    torch.testing.assert_close(encoder(x[:, 3:], cache=cache), encoder(x)[:, 3:])


def test_a_cache_outlives_inference_mode():
    encoder, x, cache = causal_encoder(), torch.randn(1, 5, 16), KeyValueCache()
    with torch.inference_mode():
        encoder(x[:, :3], cache=cache)
        encoder(x[:, 3:4], cache=cache)
    with torch.no_grad():
        torch.testing.assert_close(encoder(x[:, 4:], cache=cache), encoder(x)[:, 4:])


def test_gradients_of_the_queries_alone_pass_through_a_cache():
    encoder, x, cache = causal_encoder(), torch.randn(1, 4, 16), KeyValueCache()
    for name, parameter in encoder.named_parameters():
        parameter.requires_grad_("queries" in name)
    steps = [encoder(x[:, step : step + 1], cache=cache) for step in range(4)]
    torch.cat(steps, dim=1).square().sum().backward()
    assert all(p.grad is not None for n, p in encoder.named_parameters() if "queries" in n)
