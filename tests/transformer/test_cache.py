"""The cache keeps what it is given, in buffers that grow seldom."""

import pytest
import torch

from posenc import AxialRotary, Forgetting, Learned, Positional, Sinusoidal
from posenc.positions import Coordinates
from posenc.transformer import Encoder, KeyValueCache, LayerCache


def test_it_gives_back_all_that_was_appended():
    keys, values = torch.randn(2, 3, 20, 4), torch.randn(2, 3, 20, 4)
    cache = LayerCache()
    for start, stop in ((0, 5), (5, 6), (6, 13), (13, 20)):
        got_keys, got_values = cache.append(keys[:, :, start:stop], values[:, :, start:stop])
        assert torch.equal(got_keys, keys[:, :, :stop])
        assert torch.equal(got_values, values[:, :, :stop])
    assert cache.length == 20


def test_buffers_and_features_by_hand():
    cache, keys = LayerCache(), torch.ones(2, 3, 5, 4)
    assert cache.capacity == 0
    cache.append(keys, keys)
    features = torch.arange(20.0).view(2, 5, 2), torch.arange(10.0).view(2, 5, 1)
    assert all(map(torch.equal, cache.append_features(features), features))
    assert 5 <= cache.capacity < 100
    cache.append(keys[:, :, :1], keys[:, :, :1])
    more = [each[:, :1] for each in features]
    for got, first, new in zip(cache.append_features(more), features, more, strict=True):
        assert torch.equal(got, torch.cat((first, new), dim=1))


def test_one_line_of_positions_is_that_of_all_rows():
    cache = KeyValueCache()
    assert cache.below == 0
    cache.extend(torch.tensor([0, 2, 3]), None, below=4)
    keys = torch.arange(2.0).view(2, 1, 1, 1).expand(2, 1, 3, 4)
    cache.layer(0).append(keys, keys)
    cache.reorder(torch.tensor([1, 0]))
    assert cache.positions.tolist() == [0, 2, 3]
    assert cache.layer(0).keys[:, 0, 0, 0].tolist() == [1, 0]
    cache.crop(0)
    assert (cache.below, cache.is_empty, cache.length) == (0, True, 0)


def test_gradients_reach_cached_keys_whatever_is_appended_later():
    first = torch.randn(1, 1, 2, 2, requires_grad=True)
    new = torch.ones(1, 1, 1, 2)
    cache, used = LayerCache(), 0.0
    for keys in (first, new, new, new):
        used = used + cache.append(keys, keys)[0].square().sum()
    used.backward()
    assert torch.equal(first.grad, 4 * 2 * first)


def test_what_is_written_over_cropped_tokens_has_none_of_their_gradients():
    kept, rejected, last = (torch.randn(1, 1, 2, 2, requires_grad=True) for _ in range(3))
    cache = LayerCache()
    for keys in (kept, rejected):
        cache.append(keys, keys)
    cache.crop(2)
    with torch.no_grad():
        cache.append(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    used = cache.append(last, last)[0].square().sum()
    grads = torch.autograd.grad(used, (rejected, last), allow_unused=True)
    assert grads[0] is None
    assert torch.equal(grads[1], 2 * last)


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


def causal_encoder(positional=None) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(Sinusoidal(16)) if positional is None else positional
    return Encoder(16, 4, 2, positional=positional, is_causal=True).eval()


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
    with pytest.raises((ValueError, IndexError), match=r"batch|has 4 rows"):
        encoder(wrong, cache=cache)
    assert cache.length == 3
    assert [layer.length for layer in cache.layers] == [3, 3]
    torch.testing.assert_close(encoder(x[:, 3:], cache=cache), encoder(x)[:, 3:])


@torch.no_grad()
@pytest.mark.parametrize("size", [None, 16])
@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_a_cropped_cache_is_one_that_never_saw_the_rest(size, kept, positional):
    encoder, x = causal_encoder(positional).double(), torch.randn(2, 9, 16, dtype=torch.float64)
    real = torch.ones(2, 5, dtype=torch.bool)
    real[0, :1] = False
    cropped, fresh = KeyValueCache(size), KeyValueCache(size)
    encoder(x[:, :5], padding_mask=real, cache=cropped)
    cropped.crop(kept)
    if kept:
        encoder(x[:, :kept], padding_mask=real[:, :kept], cache=fresh)
    assert cropped.length == fresh.length == kept
    for step in (slice(5, 6), slice(6, 9)):
        got, want = encoder(x[:, step], cache=cropped), encoder(x[:, step], cache=fresh)
        torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("size", [None, 16])
def test_beams_take_the_past_of_the_row_that_they_follow(size, positional):
    encoder, x = causal_encoder(positional).double(), torch.randn(2, 8, 16, dtype=torch.float64)
    real = torch.ones(2, 5, dtype=torch.bool)
    real[1, :2] = False
    cache = KeyValueCache(size)
    encoder(x[:, :5], padding_mask=real, cache=cache)
    cache.repeat(2)  # rows 0, 0, 1, 1
    followed = torch.tensor([0, 0, 1, 1])
    steps = torch.randn(4, 3, 16, dtype=torch.float64)
    encoder(steps[:, :1], cache=cache)
    order = torch.tensor([1, 0, 3, 3])
    cache.reorder(order)
    got = encoder(steps[:, 1:], cache=cache)
    for row, beam in enumerate(order.tolist()):
        source = int(followed[beam])
        past = x[source : source + 1, :5][:, real[source]]
        whole = torch.cat((past, steps[beam : beam + 1, :1], steps[row : row + 1, 1:]), dim=1)
        want = encoder(whole)[:, -2:]
        torch.testing.assert_close(got[row : row + 1], want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("size", [None, 16])
@pytest.mark.parametrize("change", ["nothing", "repeat", "failure"])
def test_a_cache_outlives_inference_mode(change, size):
    encoder, x = causal_encoder(Positional(scores=Forgetting(4, 4))), torch.randn(1, 4, 16)
    cache = KeyValueCache(size)
    with torch.inference_mode():
        encoder(x[:, :3], cache=cache)
        if change == "repeat":
            cache.repeat(2)
        elif change == "failure":
            with pytest.raises(ValueError, match="batch"):
                encoder(torch.zeros(2, 1, 16), cache=cache)
    rows = x.expand(2, -1, -1) if change == "repeat" else x
    with torch.no_grad():
        torch.testing.assert_close(encoder(rows[:, 3:], cache=cache), encoder(rows)[:, 3:])


OWN = torch.tensor([[[1, 1]], [[5, 2]]])


@pytest.mark.parametrize("own", [OWN, Coordinates(OWN) / 2], ids=["integers", "halves"])
def test_rows_that_shared_a_grid_may_go_on_to_points_of_their_own(own):
    positional = Positional(queries_keys=AxialRotary(8))
    encoder = Encoder(16, 2, 1, positional=positional, is_causal=True).eval()
    x, first = torch.randn(1, 4, 16), torch.tensor([[[0, 0], [0, 1], [1, 0]]])
    if isinstance(own, Coordinates):
        first = Coordinates(first) / 2
    cache = KeyValueCache()
    encoder(x[:, :3], first, cache=cache)
    cache.repeat(2)
    got = encoder(x[:, 3:].expand(2, -1, -1), own, cache=cache)
    for row in range(2):
        places = [first, own[row : row + 1]]
        joined = Coordinates.cat if isinstance(own, Coordinates) else torch.cat
        whole = joined(places, dim=1)
        torch.testing.assert_close(got[row], encoder(x, whole)[0, 3:])


@torch.no_grad()
@pytest.mark.parametrize("size", [None, 16])
def test_an_emptied_cache_takes_another_batch_dtype_and_depth(size):
    """Buffers of a fixed size stay for a batch like the last one, and serve no other."""
    cache = KeyValueCache(size)
    for rows, depth, dtype in ((4, 2, torch.float64), (2, 2, torch.float64), (2, 3, torch.float32)):
        encoder = Encoder(16, 4, depth, is_causal=True).eval().to(dtype)
        x = torch.randn(rows, 4, 16, dtype=dtype)
        got = torch.cat([encoder(x[:, :3], cache=cache), encoder(x[:, 3:], cache=cache)], dim=1)
        torch.testing.assert_close(got, encoder(x))
        cache.crop(0)


@torch.no_grad()
@pytest.mark.parametrize("size", [None, 12])
def test_a_later_turn_may_begin_with_padding(size):
    """A batched chat: the second turns differ in length, and are padded on the left."""
    encoder = causal_encoder(Positional(scores=Forgetting(4, 4, std=1.0))).double()
    x, real = torch.randn(2, 9, 16, dtype=torch.float64), torch.ones(2, 9, dtype=torch.bool)
    real[0, :2] = real[1, 4:7] = False
    cache, turns = KeyValueCache(size), (slice(0, 4), slice(4, 9))
    got = [encoder(x[:, part], padding_mask=real[:, part], cache=cache) for part in turns]
    for row, made in enumerate(torch.cat(got, dim=1)):
        alone = encoder(x[row : row + 1, real[row]])[0]
        torch.testing.assert_close(made[real[row]], alone, atol=1e-12, rtol=0)


@torch.no_grad()
def test_a_cache_of_fixed_size_has_an_end_and_keeps_what_it_had():
    encoder, x = causal_encoder(), torch.randn(1, 6, 16)
    cache = KeyValueCache(size=5)
    encoder(x[:, :4], cache=cache)
    with pytest.raises(ValueError, match="2 tokens come to a cache that holds 4 of at most 5"):
        encoder(x[:, 4:], cache=cache)
    assert cache.length == 4
    torch.testing.assert_close(encoder(x[:, 4:5], cache=cache), encoder(x)[:, 4:5])


@torch.no_grad()
@pytest.mark.parametrize("size", [None, 16])
@pytest.mark.parametrize("kept", [0, 2])
def test_what_is_not_finite_is_forgotten_with_its_tokens(size, kept, positional):
    """Hidden keys have weight 0, but 0 times a NaN left in their values is NaN."""
    encoder, x = causal_encoder(positional), torch.randn(1, 5, 16)
    cache, bad = KeyValueCache(size), torch.full((1, 8, 16), torch.nan)
    if kept:
        encoder(x[:, :kept], cache=cache)
    encoder(bad, cache=cache)
    cache.crop(kept)
    torch.testing.assert_close(encoder(x[:, kept:], cache=cache), encoder(x)[:, kept:])


PROMPT, TREE = 4, [-1, -1, 0, 0, 1, 3]
"""Draft tokens, each with the one that it follows; −1: the prompt."""


def drafted() -> tuple[torch.Tensor, torch.Tensor]:
    """Where the tokens of the tree stand, and whom they see: the prompt and their ancestors."""
    depths, seen = [], torch.eye(len(TREE), dtype=torch.bool)
    for place, parent in enumerate(TREE):
        depths.append(1 if parent < 0 else depths[parent] + 1)
        if parent >= 0:
            seen[place] |= seen[parent]
    prompt = torch.ones(len(TREE), PROMPT, dtype=torch.bool)
    return torch.tensor(depths) + PROMPT - 1, torch.cat([prompt, seen], dim=1)


def in_places(mask: torch.Tensor, size: int | None) -> torch.Tensor:
    """A mask over all places of a cache of fixed size."""
    return mask if size is None else torch.nn.functional.pad(mask, (0, size - mask.shape[-1]))


@pytest.mark.parametrize("size", [None, 14])
@torch.no_grad()
def test_the_path_of_a_tree_that_is_accepted_decodes_as_if_alone(positional, size):
    encoder = causal_encoder(positional).double()
    prompt, drafts, last = (
        torch.randn(2, PROMPT + len(TREE) + 1, 16).double().split([PROMPT, len(TREE), 1], dim=1)
    )
    at, seen = drafted()
    path = torch.tensor([0, 3, 5])
    cache = KeyValueCache(size)
    encoder(prompt, cache=cache)
    tree = encoder(drafts, at, attn_mask=in_places(seen, size), cache=cache)
    cache.keep(path, last=len(TREE))
    after = encoder(last, cache=cache)
    whole = encoder(torch.cat([prompt, drafts[:, path], last], dim=1))
    torch.testing.assert_close(tree[:, path], whole[:, PROMPT:-1], atol=1e-12, rtol=0)
    torch.testing.assert_close(after, whole[:, -1:], atol=1e-12, rtol=0)
    assert cache.length == PROMPT + len(path) + 1


@pytest.mark.parametrize("size", [None, 14])
@pytest.mark.parametrize("masked", [False, True])
@torch.no_grad()
def test_a_middle_that_is_evicted_is_seen_by_nobody(positional, size, masked):
    encoder, x = causal_encoder(positional).double(), torch.randn(2, 10, 16).double()
    cache, hidden = KeyValueCache(size), KeyValueCache(size)
    for each in (cache, hidden):
        encoder(x[:, :8], cache=each)
    stays = torch.tensor([0, 1, 6, 7])
    cache.keep(torch.isin(torch.arange(8), stays) if masked else stays)
    assert cache.next_position.flatten().tolist() == [8] * cache.next_position.numel()
    seen = torch.ones(2, 10, dtype=torch.bool)
    seen[:, 2:6] = False
    got = encoder(x[:, 8:], cache=cache)
    want = encoder(x[:, 8:], attn_mask=in_places(seen, size), cache=hidden)
    torch.testing.assert_close(got, want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("size", [None, 14])
@torch.no_grad()
def test_positions_that_repeat_behind_a_cache_need_a_mask(size):
    encoder, x, cache = causal_encoder(), torch.randn(1, 3, 16), KeyValueCache(size)
    encoder(x, cache=cache)
    for at in ([3, 4, 4], [3, 2, 4]):
        with pytest.raises(ValueError, match="positions repeat behind a cache"):
            encoder(x, torch.tensor(at), cache=cache)
    assert cache.length == 3


def test_it_never_writes_into_what_it_was_given():
    first = torch.zeros(1, 1, 2, 2)
    cache = LayerCache()
    cache.append(first, first)
    cache.append(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))
    assert first.eq(0).all()


@torch.no_grad()
def test_a_cache_of_fixed_size_decodes_as_one_that_grows(positional):
    encoder, x = causal_encoder(positional).double(), torch.randn(2, 9, 16, dtype=torch.float64)
    real = torch.ones(2, 4, dtype=torch.bool)
    real[0, :2] = False
    fixed, growing = KeyValueCache(size=11), KeyValueCache()
    for step, mask in ((slice(0, 4), real), (slice(4, 5), None), (slice(5, 9), real)):
        want = encoder(x[:, step], padding_mask=mask, cache=growing)
        got = encoder(x[:, step], padding_mask=mask, cache=fixed)
        shown = torch.ones(want.shape[:2], dtype=torch.bool) if mask is None else mask
        torch.testing.assert_close(got[shown], want[shown], atol=1e-12, rtol=0)
    assert repr(fixed) == "KeyValueCache(length=9, layers=2, size=11)"


@torch.no_grad()
def test_what_a_failed_step_wrote_is_forgotten():
    encoder, x = causal_encoder(), torch.randn(1, 5, 16)
    cache, bad = KeyValueCache(size=16), torch.full((1, 8, 16), torch.nan)
    encoder(x[:, :2], cache=cache)

    def fail(*_):
        raise RuntimeError("out of memory")

    hook = encoder.blocks[-1].register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        encoder(bad, cache=cache)
    hook.remove()
    torch.testing.assert_close(encoder(x[:, 2:], cache=cache), encoder(x)[:, 2:])


@pytest.mark.parametrize("size", [None, 8])
def test_autocast_goes_on_behind_wider_keys(size):
    model, cache = decoder(), KeyValueCache(size)
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model(x[:, :-1], cache=cache)
        with torch.autocast("cpu", torch.bfloat16):
            got = model(x[:, -1:], cache=cache)
        torch.testing.assert_close(got, model(x)[:, -1:], atol=0.1, rtol=0.1)


def decoder(**options) -> Encoder:
    torch.manual_seed(0)
    return Encoder(8, 2, 2, is_causal=True, **options).eval()
